"""Foreign bytes to text and blocks: files and archives, conversion within bounds, and what belongs to an article."""
