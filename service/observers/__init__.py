"""What is notified of answers and feedback."""
