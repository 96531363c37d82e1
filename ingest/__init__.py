"""Making knowledge: option catalogues, cleaned sources, drafted write-ups, the index. It answers no questions."""
