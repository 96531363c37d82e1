"""The incidents and artefacts we know: one bilingual page each, see README.md."""

from __future__ import annotations

from kb.cases.page import CaseSet, PageFailure, load_cases, read_case, render

__all__ = ["CaseSet", "PageFailure", "load_cases", "read_case", "render"]
