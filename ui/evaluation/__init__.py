"""Evaluation over question sets, and fitting the ranking's weights."""
