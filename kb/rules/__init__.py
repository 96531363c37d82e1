"""Deterministic checks of what was pasted: one page a rule. README.md beside this file says how a page is written."""
