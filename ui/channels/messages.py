"""Messages of the bots, in both languages; see messages.toml, and slack/messages.toml for Slack alone."""

from trainmedic.kb.messages import Messages, load_messages

messages = Messages({**load_messages("trainmedic.ui.channels"), **load_messages("trainmedic.ui.channels.slack")})
