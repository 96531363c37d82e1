"""Making knowledge: option catalogues, cleaned sources, drafts of pages. Nothing here answers questions."""
