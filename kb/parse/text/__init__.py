"""Input → its stretches of text, each with its kind."""
