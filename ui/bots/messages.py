"""What every bot says, in both languages; see messages.toml."""

from trainmedic.kb.messages import load_messages

messages = load_messages("trainmedic.ui.bots")
