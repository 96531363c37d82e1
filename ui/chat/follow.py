"""Follow-up questions after an answer, and the request that each one sends. Pure.

A "what if" needs no model: the user's own file is changed and sent again under its name, and all rules run on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.service.answer.schema import Answer
from trainmedic.ui.chat.evidence import fact_name, patches, sorted_findings, spoken
from trainmedic.ui.chat.texts import Language, words

MAX_LABEL = 64
MAX_FOLLOW = 4
MAX_KEPT = 400_000
"""Code points of one text kept for a "what if"; configurations are far smaller."""
HUNK = regex(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
FOLDED = frozenset(("config", "log", "dataset"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A button. ``fill`` is written into the input; without it the button asks ``question`` with ``files``."""

    id: str
    label: str
    fill: str | None = None
    question: str = ""
    files: tuple[Attachment, ...] = ()
    investigate: bool = False


def follow_ups(
    answer: Answer, sources: Sequence[Source], case: Case | None, language: Language, *, model: bool
) -> tuple[FollowUp, ...]:
    """The buttons under an answer, the most useful first. ``case`` is that of the first cause.

    All of them are in the answer's language, so that the next answer keeps it.
    """
    t = words(spoken(answer, language))
    buttons: list[FollowUp] = []
    if answer.verdict in ("need_input", "not_in_kb"):
        buttons += [
            FollowUp(id=f"fact-{number}", label=short(item.ask), fill=f"{fact_name(item.fact)}: ")
            for number, item in enumerate(answer.missing[:3])
            if item.fact not in FOLDED
        ]
    related, aside, _ = sorted_findings(answer)
    own, _ = patches(answer, (*related, *aside))
    files = next((c for f in own if (c := applied(f.patch or "", sources))), ())
    if files:
        buttons.append(FollowUp(id="patch", label=t["follow_patch"], question=t["patched_question"], files=files))
    if case is not None and answer.verdict == "answered":
        buttons += _upgrades(answer, case, t["follow_upgrade"])
        buttons.append(FollowUp(id="still", label=t["follow_still"], question=t["follow_still"]))
    if model and answer.verdict not in ("no_fault", "explained") and not answer.steps:
        buttons.append(
            FollowUp(
                id="investigate",
                label=t["follow_investigate"],
                question=t["investigate_question"],
                investigate=True,
            )
        )
    return tuple(buttons[:MAX_FOLLOW])


def kept_sources(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The texts that may be changed and sent again: named ones of a configuration's size."""
    return tuple(source for source in sources if source.name is not None and len(source.text) <= MAX_KEPT)


def short(text: str) -> str:
    """A label of one line, cut at the end of a word."""
    text = " ".join(text.replace("`", "").split())
    text = re.sub(r"\s*[(（][^()（）]*[)）]", "", text)
    if len(text) <= MAX_LABEL:
        return text
    return text[: MAX_LABEL - 1].rsplit(" ", 1)[0].rstrip(",;:，；：") + "…"


def applied(patch: str, sources: Sequence[Source]) -> tuple[Attachment, ...]:
    """The files with a unified diff applied; empty if the diff does not fit them."""
    by_name = {source.name: source.text for source in sources}
    changed: dict[str, list[str]] = {}
    name, lines, at, shift, old, new = "", list[str](), 0, 0, 0, 0
    for line in patch.split("\n"):
        hunk = HUNK.match(line)
        if old <= 0 and new <= 0 and hunk:
            old, new = int(hunk[2] or 1), int(hunk[4] or 1)
            # A hunk that removes nothing names the line before it instead of its first one.
            at = int(hunk[1]) - (1 if old else 0) + shift
        elif old <= 0 and new <= 0 and line.startswith("+++ b/"):
            name, shift = line[6:], 0
            if name not in by_name:
                return ()
            lines = changed[name] = by_name[name].split("\n")
        elif old <= 0 and new <= 0:
            continue  # a `---` header or the empty end of the patch
        elif line.startswith("+"):
            lines.insert(at, line[1:])
            at, shift, new = at + 1, shift + 1, new - 1
        # The file has changed since the patch was made: applying it would corrupt the file.
        elif at >= len(lines) or lines[at] != line[1:]:
            return ()
        elif line.startswith("-"):
            del lines[at]
            shift, old = shift - 1, old - 1
        else:
            at, old, new = at + 1, old - 1, new - 1
    return tuple(Attachment(name=name, content="\n".join(body)) for name, body in changed.items())


def _upgrades(answer: Answer, case: Case, template: str) -> list[FollowUp]:
    """What if a package had the version in which the first cause is fixed?"""
    versions = answer.run.versions
    for package, fixed in case.fixed.items():
        # Of `>=4.46.2,<5` the first number: the smallest upgrade that helps.
        number = fixed.lstrip(">=~ ").split(",")[0].strip()
        if package not in versions or not re.fullmatch(r"\d[\w.+!-]*", number) or versions[package] == number:
            continue
        question = template.format(package=package, version=number)
        return [FollowUp(id="upgrade", label=question, question=question)]
    return []
