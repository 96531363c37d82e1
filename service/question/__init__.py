"""What a message asks: its language, concepts, negations, domain, and its relation to the conversation before it."""
