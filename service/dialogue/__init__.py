"""What a message asks: what it says, supposes and reports, and how it relates to the conversation before it."""
