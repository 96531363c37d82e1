"""One reader per format: a `kb.parse.source.Piece` in, what it says out. None of them raises on user text."""
