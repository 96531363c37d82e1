"""Pasted text → `kb.model.evidence.Evidence`, by `kb.parse.pipeline.parse`.

Pure: no disk, clock, network or environment. Never raises on user text.
"""
