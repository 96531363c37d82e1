"""What identifies persons and machines in a write-up → asterisks. Secrets and e-mail addresses are `kb.mask`'s.

Only what the words around it show to be a name, a number or an address is hidden: a log is full of numbers with dots,
and code of words with an at sign. An account or machine found in one place is hidden wherever the write-up names it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network

from trainmedic.ingest.items import Discussion, Document, masked_texts
from trainmedic.kb.fences import fence_after
from trainmedic.kb.lazy import regex


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What shows a person or a machine. Any match holds one of ``needs``; ``prose``: in code it is something else."""

    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    prose: bool

    def may_match(self, text: str) -> bool:
        return any(map(text.__contains__, self.needs))


HIDDEN = "***"
_TABLE = tomllib.loads(files(__package__).joinpath("personal.toml").read_text(encoding="utf-8"))
_SHAPES = tuple(
    Shape(pattern=regex(shape["pattern"]), needs=tuple(shape["needs"]), prose=shape.get("prose", False))
    for shape in _TABLE["shapes"]
)
_ACCOUNTS = frozenset(_TABLE["words"]["accounts"])
_WORDS = frozenset((*_TABLE["words"]["accounts"], *_TABLE["words"]["names"]))
_ADDRESS = regex(
    r"(?<![\w.+])(?:\d{1,3}(?:\.\d{1,3}){3}(?![\w.]{0,40}\d)|[0-9A-Fa-f]{1,4}:[0-9A-Fa-f:]{3,34}(?![\w:.]))"
)
_PRIVATE = tuple(ip_network(block) for block in ("10.0.0.0/8", "100.64.0.0/10"))
_LOCAL = tuple(ip_network(block) for block in ("172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"))
_VERSIONED = ("version", "nvidia", "cu", "lib", "driver", "release", "tensorrt")
_BEFORE = 120
"""Characters before an address that are looked at for the name of a package."""
_LEAST_NAME = 3
"""Characters of an account or machine that is looked for elsewhere."""


def without_persons(document: Document) -> Document:
    """The write-up without names, handles, telephone numbers, user folders, hosts and addresses of machines."""
    # Once more without secrets: in the raw text, markup may have stood between a key and its value.
    title, *texts = masked_texts((document.title, *(block.text for block in document.blocks)))
    shapes = _possible((title, *texts))
    names = _names_in((title, *texts), shapes)
    blocks = tuple(
        replace(block, text=_hidden(text, shapes, names, code=block.kind == "code"))
        for block, text in zip(document.blocks, texts, strict=True)
    )
    return replace(document, title=_hidden(title, shapes, names), blocks=blocks)


def discussion_without_persons(discussion: Discussion) -> Discussion:
    """The same of a discussion, whose messages are Markdown."""
    texts = (discussion.title, *(message.text for message in discussion.messages))
    shapes = _possible(texts)
    names = _names_in(texts, shapes)
    messages = tuple(
        replace(message, text=_hidden_markdown(message.text, shapes, names)) for message in discussion.messages
    )
    return replace(discussion, title=_hidden(discussion.title, shapes, names), messages=messages)


def _possible(texts: Sequence[str]) -> tuple[Shape, ...]:
    """The few shapes that may occur in any of the texts."""
    whole = "\n".join(texts)
    return tuple(shape for shape in _SHAPES if shape.may_match(whole))


def names_in(texts: Sequence[str]) -> frozenset[str]:
    """The accounts and the first labels of machines that the texts show to be such."""
    return _names_in(texts, _possible(texts))


def _names_in(texts: Iterable[str], shapes: Sequence[Shape]) -> frozenset[str]:
    names: set[str] = set()
    naming = [shape for shape in shapes if shape.pattern.groupindex.keys() & {"account", "machine"}]
    for text in texts:
        for shape in naming:
            for match in shape.pattern.finditer(text) if shape.may_match(text) else ():
                account, machine = match.groupdict().get("account"), match.groupdict().get("machine")
                if account and account.lower() not in _ACCOUNTS:
                    names.add(account)
                # "node" or "gpu0" is a word of the log; "gpu-17" is one machine.
                label = (machine or "").partition(".")[0]
                if len(label) > len("rank0") and any(character.isdigit() for character in label):
                    names.add(label)
    return frozenset(name for name in names if len(name) >= _LEAST_NAME)


def hidden(text: str, *, code: bool = False, names: Collection[str] = ()) -> str:
    """``names`` are also hidden as parts of paths and addresses, machines among them everywhere."""
    return _hidden(text, _SHAPES, names, code=code)


def _hidden(text: str, shapes: Iterable[Shape], names: Collection[str], *, code: bool = False) -> str:
    for shape in shapes:
        if shape.may_match(text) and not (shape.prose and code):
            text = shape.pattern.sub(_replacement, text)
    text = _ADDRESS.sub(_address, text)
    present = sorted((name for name in names if name in text), key=len, reverse=True)
    return _without_names(text, present) if present else text


def hidden_markdown(text: str, names: Collection[str] = ()) -> str:
    """The same of Markdown: what is between fences is code."""
    return _hidden_markdown(text, _SHAPES, names)


def _hidden_markdown(text: str, shapes: Iterable[Shape], names: Collection[str]) -> str:
    parts: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        if bool(before) != bool(fence):
            parts.append(_hidden("\n".join(lines), shapes, names, code=bool(before)))
            lines = []
        lines.append(line)
    parts.append(_hidden("\n".join(lines), shapes, names, code=bool(fence)))
    return "\n".join(parts)


def people(names: Iterable[str]) -> frozenset[str]:
    """What the members of a workspace are called in messages: their names, and the parts of these that are no words."""
    called = {name.strip() for name in names}
    called |= {part for name in called for part in name.split()}
    return frozenset(
        name for name in called if len(name) >= (_LEAST_NAME if name.isascii() else 2) and name.lower() not in _WORDS
    )


def without_people(text: str, names: Collection[str]) -> str:
    """The text without the `people` that it names."""
    present = sorted((name for name in names if name in text), key=len, reverse=True)
    if not present:
        return text
    # Chinese has no blanks around a name.
    patterns = (re.escape(name) if not name.isascii() else rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in present)
    return re.sub("|".join(patterns), HIDDEN, text)


def _replacement(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return f"{groups.get('lead') or ''}{HIDDEN}{groups.get('tail') or ''}"


def _without_names(text: str, names: Iterable[str]) -> str:
    alternatives = "|".join(map(re.escape, names))
    machines = "|".join(re.escape(name) for name in names if any(character.isdigit() for character in name))
    anywhere = rf"|(?<![\w-])(?:{machines})(?![\w-])" if machines else ""
    return re.sub(rf"(?<=[/\\@=])(?:{alternatives})(?=[/\\@:\s\"',;)]|$){anywhere}", HIDDEN, text)


def _address(match: re.Match[str]) -> str:
    """Hides private addresses; a version may look like one of them."""
    found = match[0]
    try:
        if ":" in found:
            IPv6Address(found)
            # Shorter ones are slices of code: x[1::2].
            return HIDDEN if found.count(":") > 2 or found.lower().startswith(("fe80", "fd")) else found
        address = IPv4Address(found)
    except AddressValueError:
        return found
    if any(address in block for block in _LOCAL):
        return HIDDEN
    near = max(0, match.start() - _BEFORE)
    line = match.string[max(near, match.string.rfind("\n", near, match.start()) + 1) : match.start()]
    return HIDDEN if any(address in block for block in _PRIVATE) and not _names_version(line) else found


def _names_version(before: str) -> bool:
    """Whether a number after this start of a line is a version: in a list of packages, or after a package's name."""
    *_, word = before.strip(" \t|:=(`\"'").lower().split() or [""]
    listed = before.endswith("  ") and len(before.split()) == 1
    return listed or word == "v" or word.endswith("-") or any(part in word for part in _VERSIONED)
