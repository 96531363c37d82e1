"""Watching a run: a log that grows, a command that runs, or a Trainer from within.

`log` and `alarm` are pure: what was written so far, and whether it shows a failure. `follow` reads a growing file,
`launch` runs a command, `tell` posts, `watcher` puts them together, `callback` is for transformers' Trainer.
"""
