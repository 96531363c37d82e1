"""The messages of composed answers, in both languages; see messages.toml."""

from trainmedic.kb.messages import load_messages

messages = load_messages("trainmedic.service.answer")
