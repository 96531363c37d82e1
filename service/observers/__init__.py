"""Observers of requests: the spans of their traces."""
