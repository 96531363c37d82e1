"""Making knowledge: option catalogues, cleaned sources, drafts of case pages. Nothing here answers questions."""
