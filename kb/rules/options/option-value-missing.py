"""An option that needs a value and stands bare."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.model.run import Option
from trainmedic.kb.rules.shared.option_offences import Offence, report
from trainmedic.kb.rules.shared.option_readers import judged
from trainmedic.kb.rules.shared.option_values import lacks_value


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
