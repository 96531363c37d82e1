"""User interfaces: the command line, the chat UI, Slack, and the composition root that wires them to the advisor."""
