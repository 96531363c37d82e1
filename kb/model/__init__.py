"""Frozen values that everything else agrees on. No behaviour, no I/O."""
