"""Options whose names are right and that are written in a way in which their reader gets something else."""

from __future__ import annotations

import re
from collections.abc import Callable

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_values import plain, readable
from trainmedic.kb.checks.option_verdicts import Reader, Verdict
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, Unresolved

_REPEATABLE = ("env", "include", "exclude")
_LINES = ("argparse", "cyclopts")
"""In files a dot is a level, and lists hold the same name many times."""
_LISTS = ("lora_target_modules", "target_modules", "ds.lora.target_modules", "lora_target")
_NAMES = regex(r"\w+(?:\s*,\s*\w+)+")
_BRACKETS = regex(r"\[[\w'\",\s]+\]")
_TAKE_NONE = ("report_to", "post_processor")
"""Options whose readers know such a word."""
_NONE = ("None", "null", "Null", "NULL")
_SCIENTIFIC = regex(r"([+-]?[0-9]+)([eE][+-]?[0-9]+)")
_OCTAL = regex(r"[+-]?0[0-7]*[1-7][0-7]*")
_SIXTY = regex(r"[+-]?[1-9][0-9]*(?::[0-5]?[0-9])+")
_TRUTHS = ("no", "off", "yes", "on", "n", "y")
_TEXT = ("str", "IntervalStrategy | str", "SaveStrategy | str", "Union[IntervalStrategy, str]", "AttentionFunction")

_Told = Callable[[Option, Reader, Verdict], tuple[str, str] | None]


def _each(told: _Told) -> Callable[[Facts], Outcome]:
    """A check that fires on every option of which something is told, in both languages."""

    def check(facts: Facts) -> Outcome:
        found = [(item[0], told(*item)) for item in judged(facts)]
        return report([Offence(option, *texts) for option, texts in found if texts is not None], facts)

    return check


def given_twice(facts: Facts) -> Outcome:
    """Fires on each later one; in a file of LLaMA-Factory 0.9.4 or newer the loader refuses it instead."""
    first: dict[tuple[str | None, str, str, str], Option] = {}
    offences = []
    for option, reader, verdict in judged(facts):
        if verdict.name in _REPEATABLE or isinstance(option.value, Unresolved):
            continue
        if reader.how in ("call", "hydra", "tree") or ("." in option.key and reader.how not in _LINES):
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


@_each
def joined_list(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
    """Module names as one text, for a reader that does not split it."""
    joined = profiles()[reader.catalogue].joined_lists.get(reader.how, "")
    if not joined or verdict.name not in _LISTS or not isinstance(option.value, str):
        return None
    text = option.value.strip()
    if not (option.quoted and _BRACKETS.fullmatch(text)) and not (joined == "any" and _NAMES.fullmatch(text)):
        return None
    names = " ".join(re.findall(r"\w+", option.value))
    return f"read as one name; the names are {names}", f"被当成一个名字；应是 {names}"


@_each
def none_as_text(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
    """``None`` or ``null`` for text, on a command line, and ``None`` in YAML (``null`` is nothing there)."""
    info = readable(option, verdict)
    if info is None or option.raw not in _NONE or info.choices or plain(info.type or "") != "str":
        return None
    if profiles()[reader.catalogue].text_none or info.key in _TAKE_NONE:
        return None
    flag = reader.how == "argparse" and option.origin is Origin.FLAG
    file = reader.how == "dict" and option.origin is Origin.YAML and option.raw == "None" and not option.quoted
    return (f"the text {option.raw!r}", f"得到的是文本 {option.raw!r}") if flag or file else None


def exponent_as_text(facts: Facts) -> Outcome:
    """``1e-5`` without a decimal point, which PyYAML reads as a text; the page bounds the framework and version."""
    own = facts.name("framework").value

    def told(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
        info, match = readable(option, verdict), _SCIENTIFIC.fullmatch(option.raw or "")
        if reader.catalogue != own or option.origin is not Origin.YAML or option.quoted or info is None:
            return None
        if match is None or not isinstance(option.value, str) or plain(info.type or "") != "float":
            return None
        better = f"{match[1]}.0{match[2]}"
        return f"{option.raw} is a text; write {better}", f"{option.raw} 是文本，应写 {better}"

    return _each(told)(facts)


def number_not_decimal(facts: Facts) -> Outcome:
    """A leading zero, or colons: YAML 1.1 reads an unquoted number in base 8 or 60."""
    offences = [
        Offence(option, f"{option.raw} is {option.value}", f"{option.raw} 读成 {option.value}")
        for option in facts.run.options
        if option.origin is Origin.YAML and not option.quoted and isinstance(option.value, int)
        if not isinstance(option.value, bool) and option.raw and str(option.value) != option.raw
        if _OCTAL.fullmatch(option.raw) or _SIXTY.fullmatch(option.raw)
    ]
    return report(offences, facts)


@_each
def word_as_boolean(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
    """A word that YAML makes a truth value, in files whose values are taken as YAML reads them."""
    info = readable(option, verdict)
    if option.origin is not Origin.YAML or option.quoted or not isinstance(option.value, bool) or info is None:
        return None
    if reader.how not in ("dict", "pydantic") or (option.raw or "").lower() not in _TRUTHS:
        return None
    kind = plain(info.type or "")
    if kind not in _TEXT:
        return None
    word = str(option.value).lower()
    meant = option.raw if option.value or kind == "str" else "disabled" if kind == "AttentionFunction" else "no"
    return f'YAML reads {word}; write "{meant}"', f'YAML 读成 {word}，应写 "{meant}"'
