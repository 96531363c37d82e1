"""Reading and embedding many items: the stages, and the executors that run them."""
