"""The bot's own messages, in both languages: those of every bot, and messages.toml."""

from trainmedic.kb.messages import Messages, load_messages

messages = Messages({**load_messages("trainmedic.ui.bots"), **load_messages("trainmedic.ui.slack")})
