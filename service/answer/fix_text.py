"""The parts of a case's fix that concern the user's run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from trainmedic.kb.engine.version_ranges import within
from trainmedic.kb.fences import fence_after, fence_of
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.service.answer.messages import messages

_NUMBER = r"\d+(?:\.\d+)+(?:\.post\d+)?"
_RELEASES = regex(
    rf"(?P<since>from |since |从 ?)?(?:(?P<below>before |below |低于 ?)|(?P<most>up to |到 ?))?(?P<low>{_NUMBER})"
    rf"(?:(?: to | or | 到 | 或 | 至 |–)(?P<high>{_NUMBER}))?"
    r"(?P<later> (?:and|or) (?:later|newer)| ?及以[后上]| ?起)?(?P<older> (?:and|or) (?:older|earlier)| ?及以前)?"
    r"(?P<prior> ?之前)?",
    re.IGNORECASE,
)
"""The releases that an entry of a list names before its colon."""
_AROUND = " ,\\"
_ON_A_LINE = 3
"""Changed lines of a diff that are shown within a sentence."""


def concerning(text: str, case: Case, evidence: Evidence) -> tuple[str, str]:
    """A fix without the list entries that name other releases or another framework than the run's, and those entries.

    An entry says what it is for before its first colon: ``0.9.2 to 0.10.1: …``, ``TRL before 1.7.0: …``,
    ``LLaMA-Factory: …``. If none is left the text stays as it is.
    """
    blocks = list(_blocks(text))
    is_entry = [_is_entry(block) for block in blocks]
    elsewhere = [entry and _is_elsewhere(block, case, evidence) for block, entry in zip(blocks, is_entry, strict=True)]
    if not any(elsewhere) or elsewhere.count(True) == is_entry.count(True):
        return text, ""
    here = "\n".join(block for block, other in zip(blocks, elsewhere, strict=True) if not other)
    return here, "\n".join(block.rstrip() for block, other in zip(blocks, elsewhere, strict=True) if other)


def without_diffs(text: str) -> str:
    """A fix without its diffs, which are of someone else's files."""
    lines: list[str] = []
    fence, is_diff = "", False
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        if not before and fence:
            is_diff = fence_of(line)[1] == "diff"
        if not (is_diff and (before or fence)):
            lines.append(line)
    return "\n".join(lines).strip()


def on_a_line(text: str, language: str) -> str:
    """A fix without room for blocks: of a small diff what it adds, else what it takes out, stands within the text."""
    lines: list[str] = []
    fence, is_diff, changed, indent = "", False, list[str](), 0
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        if not before and fence:
            is_diff, changed, indent = fence_of(line)[1] == "diff", [], len(line) - len(line.lstrip())
        elif before and not fence:
            kept = [each for each in changed if each[0] == "+"] or changed
            if kept and len(kept) <= _ON_A_LINE:
                options = ("、" if language == "zh" else ", ").join(f"`{each[1:].strip(_AROUND)}`" for each in kept)
                lines.append(options if kept[0][0] == "+" else messages("leave_out", language, options=options))
        elif before and is_diff and line[indent : indent + 1] in ("+", "-") and "`" not in line:
            changed.append(line[indent:])
        elif not before:
            lines.append(line)
    return "\n".join(lines).strip()


def _blocks(text: str) -> Iterator[str]:
    """The entries of the lists of a text, each with the lines below it, and the text between them."""
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        begins = _is_entry(line) or (bool(line.strip()) and line[0] != " " and bool(block) and not block[-1].strip())
        if block and not before and begins:
            yield "\n".join(block)
            block = []
        block.append(line)
    yield "\n".join(block)


def _is_entry(block: str) -> bool:
    return block.startswith(("- ", "* "))


def _is_elsewhere(entry: str, case: Case, evidence: Evidence) -> bool:
    """Whether an entry is certainly about other releases, or about another framework, than those of the run."""
    head, colon, _ = entry.split("\n", 1)[0][2:].replace("：", ":").partition(":")
    if not colon or "`" in head:
        return False
    package, releases = _scope(head.strip())
    fact = evidence.run.framework
    used = profiles().get(fact.value) if fact is not None else None
    named = profiles().get(package)
    if used is not None and named is not None and named not in (used, profiles().get(used.inherits)):
        trainers = named.kind == used.kind == "trainer"
        if trainers and not named.backend and used.base != package:
            return True
    owners = [package] if package else list(case.frameworks if len(case.frameworks) == 1 else case.affected)
    version = evidence.versions.get(owners[0]) if len(owners) == 1 else None
    return bool(releases) and version is not None and within(version, releases) is False


def _scope(head: str) -> tuple[str, str]:
    """The package and the range of releases of an entry's head, each empty if it names none."""
    prefix = next((prefix for prefix in ("From ", "从 ") if head.startswith(prefix)), "")
    rest = head[len(prefix) :]
    title, package = next((item for item in _names() if rest.casefold().startswith(item[0])), ("", ""))
    words = f"{prefix}{rest[len(title) :].strip()}"
    match = _RELEASES.fullmatch(words)
    return ("" if words and not match else package, _range(match) if match else "")


@cache
def _names() -> tuple[tuple[str, str], ...]:
    """The names that frameworks are written with and the framework of each, the longest first."""
    names = {
        name.casefold(): profile.name for profile in profiles().values() for name in (profile.title, *profile.names)
    }
    return tuple(sorted(names.items(), key=lambda item: (-len(item[0]), item[0])))


def _range(match: re.Match[str]) -> str:
    """The range as pages write it; empty for a single number, which may mean that release or all after it."""
    low, high = match["low"], match["high"]
    if high:
        return f">={low},{_up_to(high)}"
    if match["below"] or match["prior"]:
        return f"<{low}"
    if match["most"] or match["older"]:
        return _up_to(low)
    return f">={low}" if match["since"] or match["later"] else ""


def _up_to(number: str) -> str:
    """``0.22`` includes its patch releases."""
    parts = number.split(".")
    return f"<{parts[0]}.{int(parts[1]) + 1}" if len(parts) == 2 else f"<={number}"
