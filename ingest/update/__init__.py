"""New releases of the known packages: read, put into what is committed, and reported with what they make untrue."""
