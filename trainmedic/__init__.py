"""Find the cause of a broken LLM training run, and the smallest change that fixes it."""
