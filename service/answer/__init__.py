"""Building the answer from a diagnosis, without a model."""
