"""Reading and embedding many items: the stages, and what runs them."""
