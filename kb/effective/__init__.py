"""The configuration in effect: every option of a run with its value and where that comes from."""
