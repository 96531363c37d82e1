"""The checks that a condition cannot hold, named by the pages of `kb/causes`, whose examples test them."""
