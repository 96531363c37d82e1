"""Diagnosis by a language model: what it is shown, what it answers, and what the program proves of that."""
