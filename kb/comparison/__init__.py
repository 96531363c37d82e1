"""A run that works against one that fails."""
