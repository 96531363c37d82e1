"""What each training framework accepts, by version, and what it means in common words.

Nothing here reads the user's text; it explains options that were already read. `README.md` describes the data:
a folder for each framework. Tables are read on first use and kept.
"""
