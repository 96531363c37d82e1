"""For people who write pages, in this repository or of their own: skeletons, lint, coverage."""
