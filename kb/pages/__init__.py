"""Pages of rules and cases: reading, rendering and checking them."""
