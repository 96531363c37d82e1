"""Making knowledge: option catalogues, cleaned sources, drafted write-ups, the index. Nothing here answers questions."""
