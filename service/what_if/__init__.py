"""Changes that a user only supposes: parsing them, and running the rules as if they were made."""
