"""The language model server on a machine with a GPU."""
