"""Tools for people who write pages: coverage and originality."""
