"""Options that a write-up recommends although its framework has none of that name or does not take the value, held
against the option catalogues of the framework's release. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from trainmedic.ingest.drafts.draft import Draft, Mark
from trainmedic.ingest.drafts.likeness import denies, turns_of
from trainmedic.ingest.drafts.statements import Statement
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.profiles import title
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.report import Text

_OPTION = regex(
    r"--(?P<flag>[A-Za-z][\w.-]*\w)(?:[= ](?!--)[\"']?(?P<given>[\w.+-]*\w))?"
    r"|`(?P<name>[a-z]\w*_[\w.]+)`?\s?[:=]\s?[\"'`]?(?P<value>[\w.+-]*\w)",
    re.ASCII,
)
_WORDS_OF_TRUTH = frozenset({"true", "false", "yes", "no", "0", "1", "on", "off"})
_BEFORE = 24
"""Characters before an option that may say to leave it out."""
_OF_LIBRARIES = ("", "transformers", "deepspeed", "accelerate", "peft", "vllm", "sglang")


def wrong_options(draft: Draft, said: Sequence[Statement]) -> Iterator[Mark]:
    framework = next(iter(draft.values("framework")), "")
    if not catalogue.versions(framework):
        return
    named = (value.rpartition(" ") for value in draft.values("version"))
    release = next((version for name, _, version in named if name == framework), None)
    for statement in said:
        if statement.kind != "code" and statement.section == "fix":
            yield from _recommended(statement, framework, release)


def _recommended(statement: Statement, framework: str, release: str | None) -> Iterator[Mark]:
    def mark(kind: Literal["option", "value"], text: Text | None, *, outdated: bool = False) -> Iterator[Mark]:
        if text is not None:
            page = f"option:{framework}:{name}"
            yield Mark(kind=kind, claim=statement.passage, page=page, statement=text, why=text, outdated=outdated)

    for match in _OPTION.finditer(statement.text):
        name, value = (match["flag"] or match["name"]).replace("-", "_"), match["given"] or match["value"] or ""
        before = statement.text[max(0, match.start() - _BEFORE) : match.start()]
        if denies(before):
            continue
        info = catalogue.option(framework, name, release)
        if info is not None and info.switch and match["flag"] and value.casefold() in _WORDS_OF_TRUTH:
            yield from mark("value", _takes_no_value(name))
        elif info is not None and info.choices and value and value not in map(str, info.choices):
            yield from mark("value", _takes_only(name, info.choices[:12]))
        elif "off" in turns_of(before):
            continue
        elif info is None and name not in catalogue.history(framework):
            yield from mark("option", _unknown(framework, release, name))
        elif info is None or (release is None and info.last is not None):
            yield from mark("option", _lived(framework, name), outdated=True)


def _unknown(framework: str, release: str | None, name: str) -> Text | None:
    """That there is no such option; None if it may be one of a library below, a launcher or the user's own script."""
    suggestion = catalogue.suggest(framework, name, release)
    why = suggestion.why if suggestion is not None else ""
    if not catalogue.is_option(name):
        if why != "spelling":
            return None
    elif why in ("", "framework") and (suggestion.framework if suggestion is not None else "") in _OF_LIBRARIES:
        return None
    near = suggestion.key if suggestion is not None and why == "spelling" else ""
    where = f"{title(framework)} {release}" if release else title(framework)
    return Text(
        en=f"{where} has no option {name}." + (f" Its name is {near}." if near else ""),
        zh=f"{where} 没有 {name} 这个选项。" + (f"正确的名字是 {near}。" if near else ""),
    )


def _lived(framework: str, name: str) -> Text:
    life = catalogue.history(framework)[name]
    return Text(
        en=f"{title(framework)} has {name} from {life.first} to {life.last or 'now'} only.",
        zh=f"{title(framework)} 只在 {life.first} 到 {life.last or '现在'} 之间有 {name}。",
    )


def _takes_no_value(name: str) -> Text:
    return Text(
        en=f"{name} is a switch that takes no value: the parser refuses one. Leave it out to turn it off.",
        zh=f"{name} 是不带取值的开关，带值会被解析器拒绝；要关闭就不写它。",
    )


def _takes_only(name: str, choices: Sequence[object]) -> Text:
    listed = ", ".join(map(str, choices))
    return Text(en=f"{name} takes only: {listed}.", zh=f"{name} 只接受：{listed}。")
