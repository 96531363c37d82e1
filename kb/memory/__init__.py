"""Memory of an accelerator: predicted from the configuration, read from messages and dumps, compared."""
