"""DingTalk: a robot in HTTP mode, answers as Markdown through the session's webhook."""
