"""An option that needs a value and stands bare."""

from __future__ import annotations

from kb.model.run import Option
from kb.rules.facts import Facts
from kb.rules.logic.accepts import judged
from kb.rules.logic.option_hints import Offence, report
from kb.rules.logic.option_values import lacks_value
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where the reader stops at it; not at the end of a cut paste, and not before a placeholder."""
    last = facts.run.options[-1] if facts.run.options else None
    found = [
        Offence(option, "needs a value", "必须带值")
        for option, reader, verdict in judged(facts)
        if lacks_value(option, reader, verdict) and not (facts.run.partial and option is last)
        if not _placeholder_follows(option, facts)
    ]
    return report(found, facts)


def _placeholder_follows(option: Option, facts: Facts) -> bool:
    """Whether ``<number>`` stands behind it, which the shell takes for a redirection."""
    span = option.span
    for source in facts.evidence.sources:
        if source.name == span.attachment:
            lines = source.text.split("\n")
            if span.end_line <= len(lines):
                return lines[span.end_line - 1][span.end_column - 1 :].lstrip(" =").startswith("<")
    return False
