"""The rule engine: the condition language, the facts it reads, fixes and patches."""
