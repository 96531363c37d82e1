"""Checks a draft against its sources, sentence by sentence: markers, names, leaks and contradictions. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from trainmedic.kb.lazy import regex
from trainmedic.kb.sentences import sentences
from trainmedic.service.llm.prompts.sources import Source
from trainmedic.service.llm.verify.against import Denial, denied, line_denied
from trainmedic.service.llm.verify.blocks import Block, blocks
from trainmedic.service.llm.verify.words import (
    CODE_SPAN,
    REDACTED,
    URL,
    content,
    names,
    occurs,
    passages,
    redacted,
    visible,
)

SUPPORT = {"en": 0.4, "zh": 0.3}
"""The share of a sentence's content that a source must contain for the sentence to get its marker."""
CITED = {"en": 0.3, "zh": 0.2}
"""The same if the model itself cited the source. Measured over the published cases: seven in ten of their sentences
share this much with the rest of their own case, one in ten with another case."""
NEARLY = 0.8
"""The share of a case that the model cited must reach this fraction of the best case's. Measured like `CITED`: of the
markers that name another case of the same class of failure, 17 % pass in English (27 % without it) and 13 % in Chinese
(20 %); of the right ones it removes 3 to 4 %."""
QUOTED = 0.8
"""The share of a pasted place's words that a sentence about it contains."""
LABEL = {"en": "*(the model's inference)*", "zh": "*（模型推断）*"}
UNVERIFIED = {"en": "*(not in any source: {names})*", "zh": "*（未见于任何来源：{names}）*"}

_MARKER = regex(r"[ \t]{0,4}\[(\d{1,4}(?:[ ,，、]{1,3}\d{1,4}){0,20})\]")
_LINK = regex(r"(!?)\[([^\[\]\n]{0,300})\]\(\s?([^()\s]{0,2000})[^()\n]{0,200}\)")
_HTML_TAG = r"<(?=/?[A-Za-z][A-Za-z0-9\-]*(?:[\s/>]|$)|[!?/])"
# Tokens such as <|im_end|>: pasted back into a prompt they would end the turn.
_CHAT_TOKEN = r"<\|[A-Za-z_]{1,40}\|>"


@dataclass(frozen=True, kw_only=True)
class Grounding:
    """What sentences are checked against.

    ``corpus`` is the question with all pasted texts; ``known`` says whether a name is an option of any framework;
    ``protected`` texts must not be quoted.
    """

    sources: tuple[Source, ...]
    corpus: str = ""
    known: Callable[[str], bool] = field(default=lambda name: False)
    denials: tuple[Denial, ...] = ()
    protected: tuple[str, ...] = ()

    @cached_property
    def contents(self) -> Mapping[int, frozenset[str]]:
        return {s.marker: content(f"{s.id} {s.title} {s.text}") for s in self.sources}

    @cached_property
    def texts(self) -> Mapping[int, str]:
        """The whole text of each source in lower case, by marker."""
        return {s.marker: f"{s.id}\n{s.title}\n{s.text}".casefold() for s in self.sources}

    @cached_property
    def quoted(self) -> Mapping[int, frozenset[str]]:
        """The content words of each pasted place, by marker: a sentence about one contains nearly all of them."""
        return {s.marker: content(s.text) for s in self.sources if s.kind == "input"}

    @cached_property
    def cases(self) -> frozenset[int]:
        return frozenset(s.marker for s in self.sources if s.kind == "case")

    @cached_property
    def everything(self) -> str:
        """All texts in which a name may occur, in lower case."""
        return "\n".join((self.corpus.casefold(), *self.texts.values()))

    @cached_property
    def passages(self) -> frozenset[tuple[str, ...]]:
        return frozenset().union(*(passages(text) for text in self.protected))

    @cached_property
    def addresses(self) -> str:
        """The texts from which links are allowed: written by us, not pasted."""
        return "\n".join(f"{s.url or ''}\n{s.text}" for s in self.sources if s.kind != "input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The text that may be shown, its markers in order of first use, and the problems of the draft.

    ``stats`` counts sentences, cited, inferred, markers (written by the model), kept (of those), unknown_markers,
    flagged, withdrawn (sentences that contradict a finding or recommend what is refuted), leaked (those that repeat a
    protected text).
    """

    text: str
    citations: tuple[int, ...]
    stats: Mapping[str, int]
    flagged: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    leaked: tuple[str, ...] = ()


@dataclass(slots=True)
class _Counts:
    sentences: int = 0
    cited: int = 0
    inferred: int = 0
    markers: int = 0
    kept: int = 0
    unknown_markers: int = 0
    citations: dict[int, None] = field(default_factory=dict)
    flagged: dict[str, None] = field(default_factory=dict)
    withdrawn: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)


def verify(draft: str, ground: Grounding, language: str) -> Verification:
    """The draft with every sentence cited, labelled or removed. Never raises, whatever the draft."""
    count = _Counts()
    lines = []
    for block in blocks(redacted(visible(draft), ground.passages)):
        if block.kind == "blank":
            lines.append("")
        elif (text := _block(block, ground, count, language)) is not None:
            lines.append(text)
    return Verification(
        text=re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(),
        citations=tuple(count.citations),
        stats={
            "sentences": count.sentences,
            "cited": count.cited,
            "inferred": count.inferred,
            "markers": count.markers,
            "kept": count.kept,
            "unknown_markers": count.unknown_markers,
            "flagged": len(count.flagged),
            "withdrawn": len(count.withdrawn),
            "leaked": len(count.leaked),
        },
        flagged=tuple(count.flagged),
        withdrawn=tuple(count.withdrawn),
        leaked=tuple(count.leaked),
    )


def _block(block: Block, ground: Grounding, count: _Counts, language: str) -> str | None:
    """The block after checking; None if nothing of it is left."""
    if block.kind == "code":
        return block.body if _may_keep_code(block.body, ground, count) else None
    if block.kind == "heading":
        bare = _markers(block.body, ground, count)[1]
        if _withdrawn(bare, ground, count):
            return None
        _flag(bare, ground, count)
        return block.lead + bare
    is_row = block.kind == "row"
    parts = [block.body] if is_row else sentences(block.body)
    checked = [text for part in parts if (text := _sentence(part, ground, count, language, row=is_row))]
    return block.lead + " ".join(checked) if checked else None


def _may_keep_code(text: str, ground: Grounding, count: _Counts) -> bool:
    """Whether a fenced block may stay; its names are checked like a sentence's."""
    if REDACTED in text:
        count.leaked.append(" ".join(text.split()).replace(REDACTED, "…"))
        return False
    # The first and last line are the fences.
    if any(line_denied(line, ground.denials) for line in text.split("\n")[1:-1]):
        count.withdrawn.append(" ".join(text.split()))
        return False
    _flag(text.partition("\n")[2], ground, count)
    return True


def _sentence(text: str, ground: Grounding, count: _Counts, language: str, *, row: bool) -> str:
    """The sentence with its markers or label; empty if it is removed."""
    markers, bare = _markers(text, ground, count)
    if not bare or _withdrawn(bare, ground, count):
        return ""
    # A sentence of stop words alone ("That is it.") claims nothing and needs no label.
    words = content(bare)
    if not words:
        return bare
    count.sentences += 1
    notes = []
    unverified = _flag(bare, ground, count)
    if unverified:
        notes.append(UNVERIFIED[language].format(names=", ".join(f"`{name}`" for name in unverified)))
    supporting, kept = _supporting(words, bare, markers, ground, language)
    count.kept += kept
    if supporting:
        count.cited += 1
        count.citations.update(dict.fromkeys(supporting))
        notes.append("".join(f"[{marker}]" for marker in supporting))
    else:
        count.inferred += 1
        notes.append(LABEL[language])
    if row and bare.endswith("|"):  # inside the last cell, because text after a row is not rendered
        return f"{bare[:-1].rstrip()} {' '.join(notes)} |"
    return f"{bare} {' '.join(notes)}"


def _withdrawn(text: str, ground: Grounding, count: _Counts) -> bool:
    """Whether the text must be removed; the reason is counted."""
    if REDACTED in text:
        count.leaked.append(text.replace(REDACTED, "…"))
        return True
    if denied(text, ground.denials):
        count.withdrawn.append(text)
        return True
    return False


def _markers(text: str, ground: Grounding, count: _Counts) -> tuple[list[int], str]:
    """The known markers in the text, and the text without markers and with its links and tags disarmed; code is not
    changed."""
    markers: list[int] = []
    parts = CODE_SPAN.split(text)  # text and code in turn
    for n, part in enumerate(parts):
        if n % 2:
            parts[n] = f"`{part}`"
            continue
        plain = _disarmed(part, ground)
        markers += [int(number) for group in _MARKER.findall(plain) for number in re.findall(r"\d+", group)]
        parts[n] = _MARKER.sub("", plain)
    count.markers += len(markers)
    count.unknown_markers += sum(marker not in ground.contents for marker in markers)
    return [marker for marker in dict.fromkeys(markers) if marker in ground.contents], "".join(parts).strip()


def _disarmed(text: str, ground: Grounding) -> str:
    """Without images, HTML tags and special tokens of chat templates, and with links only to addresses in sources."""

    def link(match: re.Match[str]) -> str:
        image, label, address = match.groups()
        # Images are never kept: loading one would tell its host who reads the answer.
        if not image and address and address in ground.addresses:
            return match.group()
        # A marker written as a link is still a marker.
        return f"[{label}]" if label.isdigit() else label

    def address(match: re.Match[str]) -> str:
        return match.group() if match.group().rstrip(".,;:!?。，") in ground.addresses else f"`{match.group()}`"

    text = URL.sub(address, _LINK.sub(link, text))
    return re.sub(_HTML_TAG, "‹", re.sub(_CHAT_TOKEN, "", text))


def _supporting(
    words: frozenset[str], text: str, markers: list[int], ground: Grounding, language: str
) -> tuple[list[int], int]:
    """The sources that support the sentence, and how many of them the model cited: those cited, or else the best other.

    A source without any of the sentence's names must support it by its words alone, and a case must contain nearly as
    much of it as the best case does.
    """
    sentence_names = names(text)
    share = {}
    for marker, source_words in ground.contents.items():
        quoted = ground.quoted.get(marker)
        quoted_share = len(words & quoted) / len(quoted) if quoted else 0.0
        share[marker] = max(len(words & source_words) / len(words), quoted_share if quoted_share >= QUOTED else 0.0)
    best_case = max((share[marker] for marker in ground.cases), default=0.0)
    supporting = []
    for marker in markers:
        # Cases of one class of failure share most of their words; the better match must win.
        if marker in ground.cases and share[marker] < NEARLY * best_case:
            continue
        has_names = not sentence_names or any(occurs(name, ground.texts[marker]) for name in sentence_names)
        if share[marker] >= (CITED if has_names else SUPPORT)[language]:
            supporting.append(marker)
    if supporting or not share:
        return supporting, len(supporting)
    best = max(share, key=lambda marker: (share[marker], -marker))
    return ([best] if share[best] >= SUPPORT[language] else []), 0


def _flag(text: str, ground: Grounding, count: _Counts) -> list[str]:
    """The names, numbers and URLs that occur in no source, no pasted text and no catalogue."""
    unverified = [name for name in names(text) if not ground.known(name) and not occurs(name, ground.everything)]
    urls = [url.rstrip(".,;:!?。，") for url in URL.findall(text)]
    unverified += [url for url in urls if url not in ground.addresses and url.casefold() not in ground.everything]
    count.flagged.update(dict.fromkeys(unverified))
    return unverified
