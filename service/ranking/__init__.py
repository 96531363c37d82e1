"""Retrieval and ranking: from a query to the causes, with their probabilities."""
