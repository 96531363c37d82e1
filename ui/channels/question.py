"""The request in a message, and its language. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainmedic.kb.language import language_of
from trainmedic.kb.lazy import regex
from trainmedic.kb.mask import mask
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.model.place import Attachment

AUDIT_WORDS = ("audit", "审计", "已知缺陷")
_FENCED = regex(r"^(?P<ticks>`{3,})[^\n]*\n.*?(?:^(?P=ticks)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)


def prose(text: str) -> str:
    """The text outside of code blocks."""
    return _FENCED.sub("", text).strip()


def prose_language(text: str) -> str:
    """The language of the prose: of all of it, or of its first line.

    Code blocks are left out: a pasted command would turn a Chinese question into English.
    """
    words = prose(text)
    return "zh" if "zh" in (language_of(words), language_of(words.partition("\n")[0])) else "en"


def has_words(text: str) -> bool:
    return bool(prose(text))


def wants_audit(question: str, attachments: Sequence[Attachment], read: Read) -> bool:
    """Whether a message asks for the known defects: by word, or by a list of packages and nothing else."""
    words = prose(question).lower().split()
    if words:
        return words[0] in AUDIT_WORDS
    evidence = read(question, tuple(attachments))
    run = any(run.options for run in evidence.runs) or evidence.rows or evidence.tracebacks or evidence.signals
    return bool(evidence.versions) and not run


def is_repeated(text: str, questions: Sequence[str]) -> bool:
    """Whether an earlier question, stored masked, contains this text: it would be read again as part of this one."""
    masked = mask(text).text.strip()
    return any(masked in question for question in questions)
