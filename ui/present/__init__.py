"""Answers and reports as text for one channel each. Pure; no channel knows another."""
