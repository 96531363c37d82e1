"""What programs print: rows of metrics, messages, errors, and the signals in them."""
