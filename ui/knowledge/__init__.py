"""The knowledge as pages of their own: searched, filtered and read without a script."""
