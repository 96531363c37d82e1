"""Tools for people who write pages: coverage, originality."""
