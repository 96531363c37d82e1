"""Which known defects an environment has, and which versions do without them."""
