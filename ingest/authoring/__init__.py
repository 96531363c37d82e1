"""For people who write pages, in this repository or of their own: new pages, lint."""
