"""Pages of causes with their checks, of mechanisms and of defects: reading and rendering them."""
