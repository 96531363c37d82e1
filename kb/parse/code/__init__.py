"""The user's own training code: faults that no framework checks, read from its syntax. Never executed."""
