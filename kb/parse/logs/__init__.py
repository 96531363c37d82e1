"""Output of programs: rows of metrics, messages, errors, and the signals in them."""
