"""Discord: commands over an interactions endpoint, answered by webhooks of the interaction; no bot token."""
