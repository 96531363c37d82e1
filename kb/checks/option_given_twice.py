"""One option written twice with different values in the same command or file."""

from __future__ import annotations

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.model.run import Option, Unresolved

_REPEATABLE = ("env", "include", "exclude")
_LINES = ("argparse", "cyclopts")
"""In files a dot is a level, and lists hold the same name many times."""


def check(facts: Facts) -> Outcome:
    """Fires on each later one; in a file of LLaMA-Factory 0.9.4 or newer the loader refuses it instead."""
    first: dict[tuple[str | None, str, str, str], Option] = {}
    offences = []
    for option, reader, verdict in judged(facts):
        if (
            verdict.name in _REPEATABLE
            or isinstance(option.value, Unresolved)
            or reader.how in ("call", "hydra", "tree")
        ):
            continue
        if "." in option.key and reader.how not in _LINES:
            continue
        key = (option.span.attachment, option.scope, option.origin.value, verdict.name)
        before = first.setdefault(key, option)
        if before is option or before.raw == option.raw or before.span.order >= option.span.order:
            continue
        if _branches_between(before, option, facts):
            continue
        offences.append(Offence(before, f"{before.raw!r} here", f"前面是 {before.raw!r}"))
        offences.append(
            Offence(option, f"{option.raw!r} further down, which counts", f"后面是 {option.raw!r}，以它为准")
        )
    return report(offences, facts)


def _branches_between(before: Option, option: Option, facts: Facts) -> bool:
    """Whether a shell script decides between the two places which of them it comes to."""
    for source in facts.evidence.sources:
        if source.name == option.span.attachment:
            lines = source.text.split("\n")[before.span.line : option.span.line - 1]
            return any(line.strip().partition(" ")[0] in ("else", "elif", "fi", ";;", "esac") for line in lines)
    return False
