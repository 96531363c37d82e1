"""A package's own source, read as text: nothing of it is imported, built or run."""
