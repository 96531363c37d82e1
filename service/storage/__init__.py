"""Where conversations, answers and feedback are stored, and the migrations of that database."""
