"""A new classification head where a reward model or a classifier starts to train: it has to be new."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import lines
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.logs.metrics import is_rl

_LIST = regex(r"checkpoint at (?P<path>\S+) and are newly initialized: \[(?P<names>[^\]\n]{1,4000})\]")
_TITLE = regex(r"ForSequenceClassification LOAD REPORT from: (?P<path>\S+)")
_ROW = regex(r"(?P<names>[\w.]{1,200}) *\| *MISSING")
_HEADS = ("score.", "classifier.", "v_head.summary.", "value_head.")
_SUPERVISED = ("sft", "reward")
_TRAINED = ("reward", "rm", "prm", "orm", "reranker", "checkpoint")
"""Words in the path of a checkpoint that has a trained head, which must not be new."""
_REWARD_MODELS = ("reward_model", "reward_model_path", "reward_pretrain", "reward_funcs", "reward_adapters")


def check(facts: Facts) -> Outcome:
    """Fires if the head of a base model is all that is new, and the log shows supervised training rows."""
    if not _trains_a_head(facts):
        return NOT_SHOWN
    lists = list(lines(facts.evidence, "ForSequenceClassification were not initialized", _LIST))
    titles = list(lines(facts.evidence, "ForSequenceClassification LOAD REPORT", _TITLE))
    rows = list(lines(facts.evidence, "MISSING", _ROW)) if titles else []
    names = [*_groups(lists, _LIST, "names"), *_groups(rows, _ROW, "names")]
    paths = [*_groups(lists, _LIST, "path"), *_groups(titles, _TITLE, "path")]
    if not names or not all(map(_is_head, names)) or any(map(_is_trained, paths)):
        return NOT_SHOWN
    if any(map(partial(_follows_training, facts), (*lists, *rows))):
        return NOT_SHOWN
    return fires((lists or rows)[0])


def _follows_training(facts: Facts, span: Span) -> bool:
    """Whether rows of the same log stand above: then a result is loaded, which must have its head."""
    return any(row.span.attachment == span.attachment and row.span.line < span.line for row in facts.evidence.rows)


def _trains_a_head(facts: Facts) -> bool:
    """Whether training rows are logged, and nothing speaks of RL, which loads a finished reward model."""
    rows = [row for row in facts.evidence.rows if "loss" in row.metrics]
    stage = facts.name("stage").value
    if not rows or any(map(is_rl, rows)) or (isinstance(stage, str) and stage not in _SUPERVISED):
        return False
    return not any(facts.options(key) for key in _REWARD_MODELS)


def _groups(spans: Iterable[Span], pattern: re.Pattern[str], group: str) -> list[str]:
    return [match[group] for span in spans if (match := pattern.search(span.text)) is not None]


def _is_head(names: str) -> bool:
    return all(name.strip(" '").startswith(_HEADS) for name in names.split(","))


def _is_trained(path: str) -> bool:
    words = "".join(character if character.isalnum() else " " for character in path.lower()).split()
    return any(word in words for word in _TRAINED)
