"""Tests of the chat pages."""
