"""Options that a write-up recommends although its framework has none of that name or does not take the value, and
defaults that it states wrongly. Held against the option catalogues of the framework's release. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from trainmedic.ingest.drafts.draft import Draft, Mark
from trainmedic.ingest.drafts.likeness import denies, turns_of
from trainmedic.ingest.drafts.statements import Statement
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.catalogue import OptionInfo
from trainmedic.kb.frameworks.profiles import title
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.report import Text

_OPTION = regex(
    r"--(?P<flag>[A-Za-z][\w.-]*\w)(?:[= ](?!--)[\"']?(?P<given>[\w.+-]*\w))?"
    r"|`(?P<name>[a-z]\w*_[\w.]+)`?\s?[:=]\s?[\"'`]?(?P<value>[\w.+-]*\w)",
    re.ASCII,
)
_DEFAULT = regex(
    r"(?P<name>[a-z]\w*_\w+)`?[^,;，；。.]{0,12}?(?:默认值?|defaults?)(?:\s?(?:参数|value))?\s?(?:为|是|is|to|of|=|:)?\s?"
    r"[`\"“]?(?P<value>[0-9][0-9.]*(?:e-?[0-9]+)?|true|false|none)",
    re.IGNORECASE | re.ASCII,
)
_WORDS_OF_TRUTH = frozenset({"true", "false", "yes", "no", "0", "1", "on", "off"})


def wrong_options(draft: Draft, said: Sequence[Statement]) -> Iterator[Mark]:
    framework = next(iter(draft.values("framework")), "")
    if not catalogue.versions(framework):
        return
    release = version_of(draft, framework)
    for statement in said:
        if statement.kind == "code":
            continue
        if statement.section == "fix":
            yield from _recommended(statement, framework, release)
        for match in _DEFAULT.finditer(statement.text):
            yield from _default(statement, framework, release, match["name"], match["value"])


def version_of(draft: Draft, package: str) -> str | None:
    named = (value.rpartition(" ") for value in draft.values("version"))
    return next((version for name, _, version in named if name == package), None)


def _recommended(statement: Statement, framework: str, release: str | None) -> Iterator[Mark]:
    for match in _OPTION.finditer(statement.text):
        name, value = (match["flag"] or match["name"]).replace("-", "_"), match["given"] or match["value"] or ""
        info = catalogue.option(framework, name, release)
        if denies(_before(statement.text, match.start())):
            continue
        if info is not None and info.switch and match["flag"] and value.casefold() in _WORDS_OF_TRUTH:
            yield _mark(statement, framework, name, "value", _takes_no_value(info))
        elif info is not None and info.choices and value and value not in map(str, info.choices):
            yield _mark(statement, framework, name, "value", _takes_only(info))
        elif "off" in turns_of(_before(statement.text, match.start())):
            continue
        elif info is None:
            yield from _unknown(statement, framework, release, name)
        elif release is None and info.last is not None:
            yield _mark(statement, framework, name, "option", _lived(framework, name), outdated=True)


def _before(text: str, start: int) -> str:
    return text[max(0, start - 24) : start]


def _unknown(statement: Statement, framework: str, release: str | None, name: str) -> Iterator[Mark]:
    if name in catalogue.history(framework):
        yield _mark(statement, framework, name, "option", _lived(framework, name), outdated=True)
        return
    # Options of the libraries below, of launchers and of the user's own script are somebody else's.
    suggestion = catalogue.suggest(framework, name, release)
    if catalogue.is_option(name) and (suggestion is None or suggestion.why == "framework"):
        owner = suggestion.framework if suggestion is not None else ""
        if owner in ("", "transformers", "deepspeed", "accelerate", "peft", "vllm", "sglang"):
            return
    elif not catalogue.is_option(name) and (suggestion is None or suggestion.why != "spelling"):
        return
    near = suggestion.key if suggestion is not None and suggestion.why == "spelling" else ""
    where = f"{title(framework)} {release}" if release else title(framework)
    text = Text(
        en=f"{where} has no option {name}." + (f" Its name is {near}." if near else ""),
        zh=f"{where} 没有 {name} 这个选项。" + (f"正确的名字是 {near}。" if near else ""),
    )
    yield _mark(statement, framework, name, "option", text)


def _default(statement: Statement, framework: str, release: str | None, name: str, value: str) -> Iterator[Mark]:
    releases = (release,) if release else catalogue.versions(framework)
    infos = [info for at in releases if (info := catalogue.option(framework, name, at)) is not None]
    if not infos or not all(info.default_known for info in infos):
        return
    agreeing = [info for info in infos if any(_same(value, default) for default in _defaults(info))]
    if agreeing and agreeing[-1] is infos[-1]:
        return
    now = " / ".join(dict.fromkeys(map(_shown, _defaults(infos[-1]))))
    en = f"The default of {name} is {now} in {title(framework)} {infos[-1].version}"
    zh = f"{title(framework)} {infos[-1].version} 中 {name} 的默认值是 {now}"
    if agreeing:
        en, zh = f"{en}; it was {value} up to {agreeing[-1].version}", f"{zh}；到 {agreeing[-1].version} 为止是 {value}"
    yield _mark(statement, framework, name, "default", Text(en=f"{en}.", zh=f"{zh}。"), outdated=bool(agreeing))


def _defaults(info: OptionInfo) -> tuple[object, ...]:
    return (info.default, *info.default_by.values())


def _shown(value: object) -> str:
    return "None" if value is None else str(value)


def _same(written: str, default: object) -> bool:
    try:
        return float(written) == float(str(default))
    except ValueError:
        return written.casefold() == str(default).casefold()


def _lived(framework: str, name: str) -> Text:
    life = catalogue.history(framework)[name]
    return Text(
        en=f"{title(framework)} has {name} from {life.first} to {life.last or 'now'} only.",
        zh=f"{title(framework)} 只在 {life.first} 到 {life.last or '现在'} 之间有 {name}。",
    )


def _takes_no_value(info: OptionInfo) -> Text:
    return Text(
        en=f"{info.key} is a switch that takes no value: the parser refuses one. Leave it out to turn it off.",
        zh=f"{info.key} 是不带取值的开关，带值会被解析器拒绝；要关闭就不写它。",
    )


def _takes_only(info: OptionInfo) -> Text:
    listed = ", ".join(map(str, info.choices[:12]))
    return Text(en=f"{info.key} takes only: {listed}.", zh=f"{info.key} 只接受：{listed}。")


def _mark(
    statement: Statement,
    framework: str,
    name: str,
    kind: Literal["option", "value", "default"],
    text: Text,
    *,
    outdated: bool = False,
) -> Mark:
    page = f"option:{framework}:{name}"
    return Mark(kind=kind, claim=statement.passage, page=page, statement=text, why=text, outdated=outdated)
