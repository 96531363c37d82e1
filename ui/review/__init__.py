"""The curator's pages."""
