"""What a message of a conversation is beside a plain question: a supposed change, or the beginning of another topic.

A supposed change ("what about ZeRO-2?", "把 attention 换成 eager 呢") is no fact of the run: `suppose` finds it, and
`Supposed.rest` is the message without it. `turn_of` tells whether a message goes on about what was asked before.
Pure; every pattern is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from trainmedic.kb.frameworks.names import is_option
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import RunConfig
from trainmedic.kb.parse.signal_kinds import BENIGN
from trainmedic.service.question.domain import length
from trainmedic.service.question.intent_patterns import (
    ATTENTION,
    CLAUSE,
    COMPARES,
    CONTINUES,
    EXPLICIT,
    FLAG,
    INSTEAD,
    NEW_TOPIC,
    NUMBERS,
    OFF,
    OPTION,
    PRECISION,
    REPORTED,
    SAME_RUN,
    SOLVED,
    STAGE,
    STRONG,
    VERSION_OF,
    WEAK,
)

MAX_READ = 6_000
"""Code points of a message that are looked through."""
MAX_CLAUSE = 400
"""A longer stretch without a break is pasted text, not a supposition."""
SHORT = 24
"""A bare ``ZeRO-2?`` is a supposition only as short as this (letters; a Chinese character counts as two)."""
PLAIN = 160
"""A supposition in less than so many words is no longer than this."""
WHOLE = 50
"""Letters of a message that names another framework or algorithm and can stand by itself as a question."""
NEAR = 40
"""How far from a name the word stands that switches it off."""
_LETTERS = re.compile(r"[A-Za-z0-9\u3400-\u9fff]")
_CODE = re.compile(r"^\s{0,20}(?:--|[\w.]{1,60}\s?[:=]\s)|\\$|[{};]\s{0,4}$")
_FLAG_TRUE, _FLAG_FALSE = "true", "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """``changes`` as `what_if` takes them; ``rest`` is the message with the suppositions as blanks."""

    changes: Mapping[str, str]
    rest: str

    @property
    def alone(self) -> bool:
        """Whether the message says nothing else."""
        return _LETTERS.search(self.rest) is None


def suppose(message: str, glossary: Glossary, *, follows: bool) -> Supposed | None:
    """What a message supposes to be otherwise, or None. ``follows``: it is not the first of its conversation.

    The first message of a conversation supposes something only in so many words ("what if", "如果…会").
    """
    if not (STRONG if not follows else WEAK).search(message, 0, MAX_READ) or NEW_TOPIC.search(message, 0, MAX_READ):
        return None
    changes: dict[str, str] = {}
    rest = list(message)
    for start, end in _clauses(message[:MAX_READ]):
        clause = message[start:end]
        if not _supposes(clause, follows=follows):
            continue
        found = changes_in(clause, glossary)
        if found:
            changes |= found
            rest[start:end] = [letter if letter == "\n" else " " for letter in clause]
    return Supposed(changes=MappingProxyType(changes), rest="".join(rest)) if changes else None


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    for match in CLAUSE.finditer(text):
        if match.end() - match.start() <= MAX_CLAUSE and not _CODE.search(match[0]):
            yield match.span()


def _supposes(clause: str, *, follows: bool) -> bool:
    if STRONG.search(clause):
        return True
    if not follows or REPORTED.search(clause):
        return False
    size = length(clause)
    return (size <= SHORT and WEAK.search(clause) is not None) or (
        size <= PLAIN and EXPLICIT.search(clause) is not None
    )


def changes_in(clause: str, glossary: Glossary) -> dict[str, str]:
    """The settings and versions that a clause names, with the values it gives them."""
    old = INSTEAD.findall(clause)
    said = INSTEAD.sub(" ", clause)
    changes: dict[str, str] = {}
    for match in VERSION_OF.finditer(said):
        changes[re.sub(r"[ _]", "-", match["name"].lower())] = match["version"]
    said = VERSION_OF.sub(" ", said)
    for match in OPTION.finditer(said):
        name = match["name"].lstrip("-")
        if is_option(name):
            changes[name] = match["value"]
    said = OPTION.sub(lambda m: " " if m["name"].lstrip("-") in changes else m[0], said)
    off = OFF.search(said) is not None
    if (stage := STAGE.search(said)) is not None:
        changes["zero_stage"] = "0" if off and _near(said, stage) else next(g for g in stage.groups() if g)
    for name, pattern in ATTENTION:
        if (found := pattern.search(said)) is not None:
            changes["attention"] = "unset" if off and _near(said, found) else name
            break
    for name, pattern in PRECISION:
        if (found := pattern.search(said)) is not None:
            changes[name] = _FLAG_FALSE if off and _near(said, found) else _FLAG_TRUE
    for name, pattern in NUMBERS:
        if (found := pattern.search(said)) is not None:
            changes[name] = found["value"]
    for name, place in _switches(said, glossary):
        if name not in changes:
            changes[name] = _FLAG_FALSE if off and OFF.search(said, 0, place + NEAR) else _FLAG_TRUE
    changes = changes or _bare(said, off=off)
    for name, pattern in PRECISION:
        if name not in changes and any(pattern.search(" ".join(each)) for each in old) and _precise(changes):
            changes[name] = _FLAG_FALSE
    return changes


def _bare(said: str, *, off: bool) -> dict[str, str]:
    """Options named without a value: ``without --vanilla_loss``, ``and with --packing_samples``."""
    found = {}
    for match in FLAG.finditer(said):
        name, out = match["name"], off and _near(said, match)
        if is_option(name) and (out or match[0].startswith("--")):
            found[name] = "unset" if out else _FLAG_TRUE
    return found


def _near(said: str, found: re.Match[str]) -> bool:
    """Whether the word that switches off stands by what was found."""
    return OFF.search(said, max(0, found.start() - NEAR), found.end() + NEAR) is not None


def _precise(changes: Mapping[str, str]) -> bool:
    return any(changes.get(name) == _FLAG_TRUE for name, _ in PRECISION)


def _switches(said: str, glossary: Glossary) -> Iterator[tuple[str, int]]:
    """Settings that are on or off, by the glossary's words."""
    for match in glossary.find(said):
        settings = glossary.concepts[match.concept].settings
        if len(settings) == 1 and settings[0] in SWITCHES and glossary.concepts[match.concept].kind != "symptom":
            yield settings[0], match.start


SWITCHES = frozenset(
    {"packing", "neat_packing", "padding_free", "gradient_checkpointing", "liger", "unsloth", "torch_compile"}
    | {"overlap_comm", "load_in_4bit", "load_in_8bit", "dora", "rslora", "optimizer_offload", "param_offload"}
    | {"dynamic_batch", "streaming", "tf32", "train_on_prompt", "assistant_only_loss", "completion_only_loss"}
)
"""Settings that a sentence switches on or off by their name alone."""


def completed(changes: Mapping[str, str], run: RunConfig) -> dict[str, str]:
    """The changes with what they mean for this run: bf16 takes the place of an fp16 that is on, and the reverse."""
    found = dict(changes)
    for name, other in (("bf16", "fp16"), ("fp16", "bf16")):
        setting = run.settings.get(other)
        on = setting is not None and setting.value is True
        if found.get(name) == _FLAG_TRUE and on and other not in found:
            found = {other: _FLAG_FALSE, **found}
        if found.get(other) == _FLAG_FALSE and not on:
            del found[other]
    return found


class Relation(StrEnum):
    """How a message stands to the conversation before it."""

    SAME = "same"  # it adds to what was asked
    SYMPTOM = "symptom"  # the same run, but another thing goes wrong
    NEW = "new"  # something else altogether


KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("memory", ("oom", "cpu_oom", "memory")),
    ("communication", ("nccl", "hang", "connection", "throughput")),
    ("output", ("never_stops", "repeats", "length_", "gibberish")),
    ("start", ("unrecognized", "missing_module", "import", "value_error", "type_error", "key_error", "assertion")),
    ("numbers", ("loss", "grad_norm", "kl_", "logits", "logps", "reward", "entropy", "accuracy", "nll", "eval_loss",
                 "learning_rate", "lr_", "margins", "clip", "advantage")),
)  # fmt: skip
"""Kinds of trouble, by how their signals begin. Numbers that go wrong go wrong together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gist:
    """What a message is about: ``framework`` and ``algorithm`` where named, the kinds of ``trouble`` it complains of.

    ``text`` is the message itself, for its words that go on or begin anew.
    """

    framework: str | None = None
    algorithm: str | None = None
    trouble: frozenset[str] = frozenset()
    options: bool = False
    text: str = ""

    def joined(self, later: Gist, *, replaces: bool = False) -> Gist:
        """This and a later message of the same topic; ``replaces``: only the later one's trouble counts."""
        return Gist(
            framework=later.framework or self.framework,
            algorithm=later.algorithm or self.algorithm,
            trouble=later.trouble if replaces else self.trouble | later.trouble,
            options=self.options or later.options,
        )


def gist_of(evidence: Evidence, glossary: Glossary) -> Gist:
    """What a message and its attachments are about."""
    run = evidence.run
    kinds = {signal.kind for signal in evidence.signals} - BENIGN
    trouble = set()
    for match in dict.fromkeys(glossary.ids(evidence.question)):
        concept = glossary.concepts[match]
        if concept.kind in ("symptom", "error"):
            kinds.update(concept.signals)
            if not concept.signals:
                trouble.add(concept.id)
    trouble |= {name for name, starts in KINDS if any(kind.startswith(starts) for kind in kinds)}
    trouble |= {trace.exception for trace in evidence.tracebacks if trace.root}
    return Gist(
        framework=run.framework.value if run.framework is not None else None,
        algorithm=run.algorithm.value if run.algorithm is not None else None,
        trouble=frozenset(trouble),
        options=bool(run.options),
        text=evidence.question,
    )


def relation_of(own: Gist, before: Gist) -> Relation:
    """How a message stands to what came before it."""
    if NEW_TOPIC.search(own.text):
        return Relation.SYMPTOM if SAME_RUN.search(own.text) else Relation.NEW
    if own.trouble - before.trouble and SOLVED.search(own.text):
        return Relation.SYMPTOM
    framework, algorithm = (
        one is not None and two is not None and one != two
        for one, two in ((own.framework, before.framework), (own.algorithm, before.algorithm))
    )
    compares = COMPARES.search(own.text) is not None
    if framework and own.trouble and not compares:
        return Relation.NEW
    if CONTINUES.search(own.text):
        return Relation.SAME
    if (framework or algorithm) and (own.trouble or (length(own.text) >= WHOLE and not compares)):
        return Relation.NEW
    if own.trouble and before.trouble and not own.trouble & before.trouble:
        return Relation.SYMPTOM
    return Relation.SAME
