"""Where conversations, answers and feedback are stored, the migrations of that database, and what a curator learns
from them."""
