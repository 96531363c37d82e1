"""The language model: its client, prompts, generation, and the verification of its text."""
