"""What arrived → its stretches of text, each with what it is."""
