"""Options of each training framework by version, mapped to canonical settings.

Nothing here reads the user's text; it explains options that were already read. `README.md` describes the data:
a folder for each framework. Tables are read on first use and kept.
"""
