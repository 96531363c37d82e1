"""Understanding a message: its facts, suppositions and reports, and how it relates to the conversation so far."""
