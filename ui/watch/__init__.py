"""Watching a run: a log that grows, a command that runs, or a Trainer from within.

`log` and `alarm` are pure: the text so far, and the signs of failure in it. `follow` reads a growing file, `launch`
runs a command, `notify` posts, `watcher` puts them together, `callback` is for transformers' Trainer.
"""
