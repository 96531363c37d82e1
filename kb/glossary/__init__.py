"""Terms of training trouble in English and Chinese, with slang and misspellings."""

from __future__ import annotations

from trainmedic.kb.glossary.terms import Concept, Glossary, Match, load_glossary

__all__ = ["Concept", "Glossary", "Match", "load_glossary"]
