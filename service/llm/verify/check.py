"""The draft against its ground: markers, names, leaks and contradictions, sentence by sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from trainmedic.service.llm.prompts.sources import Source
from trainmedic.service.llm.verify.against import Denial, denied, line_denied
from trainmedic.service.llm.verify.pieces import Piece, pieces, sentences
from trainmedic.service.llm.verify.words import STRUCK, URL, content, names, passages, stands, struck, visible

SUPPORT = {"en": 0.4, "zh": 0.3}
"""Share of a sentence's content that a source must hold for the sentence to get its marker."""
CITED = {"en": 0.3, "zh": 0.2}
"""The same where the model itself named the source. Measured over the published cases: of their sentences seven in ten
share as much with the rest of their own case, one in ten with another case."""
NEARLY = 0.8
"""The least share of a case that the model named, in that of the case which holds most of the sentence. Measured like
`CITED`: of markers of another case of the same class of failure it lets 17 % pass in English (27 % without it) and 13 %
in Chinese (20 %), and takes 3 to 4 % of the right ones."""
QUOTED = 0.8
"""Share of a pasted place that a sentence about it holds."""
LABEL = {"en": "*(the model's inference)*", "zh": "*（模型推断）*"}
UNVERIFIED = {"en": "*(stands in no source: {names})*", "zh": "*（未见于任何来源：{names}）*"}

_CODE = re.compile(r"(`[^`\n]+`)")
_MARKER = re.compile(r"[ \t]{0,4}\[(\d{1,4}(?:[ ,，、]{1,3}\d{1,4}){0,20})\]")
_LINK = re.compile(r"(!?)\[([^\[\]\n]{0,300})\]\(\s?([^()\s]{0,2000})[^()\n]{0,200}\)")
_TAG = re.compile(r"<(?=/?[A-Za-z][A-Za-z0-9\-]*(?:[\s/>]|$)|[!?/])")
_TURN = re.compile(r"<\|[A-Za-z_]{1,40}\|>")


@dataclass(frozen=True, kw_only=True)
class Grounding:
    """What sentences are held against. ``corpus`` is all that was pasted and asked; ``known`` says whether a name is an
    option of any framework; ``protected`` texts must not show."""

    sources: tuple[Source, ...]
    corpus: str = ""
    known: Callable[[str], bool] = field(default=lambda name: False)
    denials: tuple[Denial, ...] = ()
    protected: tuple[str, ...] = ()

    @cached_property
    def contents(self) -> Mapping[int, frozenset[str]]:
        """The content words of each source, by marker."""
        return {s.marker: content(f"{s.id} {s.title} {s.text}") for s in self.sources}

    @cached_property
    def said(self) -> Mapping[int, str]:
        """Each source in lower case, by marker."""
        return {s.marker: f"{s.id}\n{s.title}\n{s.text}".casefold() for s in self.sources}

    @cached_property
    def quoted(self) -> Mapping[int, frozenset[str]]:
        """The content words of the pasted places alone, by marker: a sentence about one holds nearly all of them."""
        return {s.marker: content(s.text) for s in self.sources if s.kind == "input"}

    @cached_property
    def cases(self) -> frozenset[int]:
        """The markers of the cases."""
        return frozenset(s.marker for s in self.sources if s.kind == "case")

    @cached_property
    def everything(self) -> str:
        """All texts that a name may stand in, in lower case."""
        return "\n".join((self.corpus.casefold(), *self.said.values()))

    @cached_property
    def passages(self) -> frozenset[tuple[str, ...]]:
        """Every run of words that must not show."""
        return frozenset().union(*(passages(text) for text in self.protected))

    @cached_property
    def addresses(self) -> str:
        """The texts that a link may stand in: written by us, not pasted."""
        return "\n".join(f"{s.url or ''}\n{s.text}" for s in self.sources if s.kind != "input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The text that may be shown, the markers it uses in order of first use, what was counted, and what was found.

    ``stats``: sentences, cited, inferred, markers (written by the model), kept (of those), unknown_markers, flagged,
    withdrawn (sentences that contradict or recommend what is refuted), leaked (those that repeat what is protected).
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
    """The draft with every sentence resolved, labelled or taken out. Anything may be given; nothing is raised."""
    count = _Counts()
    lines = []
    for piece in pieces(struck(visible(draft), ground.passages)):
        if piece.kind == "blank":
            lines.append("")
        elif (said := _piece(piece, ground, count, language)) is not None:
            lines.append(said)
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


def _piece(piece: Piece, ground: Grounding, count: _Counts, language: str) -> str | None:
    """One piece as it may stand; None where nothing of it may."""
    if piece.kind == "code":
        return piece.body if _block(piece.body, ground, count) else None
    if piece.kind == "heading":
        bare = _markers(piece.body, ground, count)[1]
        if _withdrawn(bare, ground, count):
            return None
        _flag(bare, ground, count)
        return piece.lead + bare
    whole = piece.kind == "row"
    parts = [piece.body] if whole else sentences(piece.body)
    kept = [said for part in parts if (said := _sentence(part, ground, count, language, row=whole))]
    return piece.lead + " ".join(kept) if kept else None


def _block(text: str, ground: Grounding, count: _Counts) -> bool:
    """Whether a fenced block may stay; its names are looked at like a sentence's."""
    if STRUCK in text:
        count.leaked.append(" ".join(text.split()).replace(STRUCK, "…"))
        return False
    if any(line_denied(line, ground.denials) for line in text.split("\n")[1:-1]):
        count.withdrawn.append(" ".join(text.split()))
        return False
    _flag(text.partition("\n")[2], ground, count)
    return True


def _sentence(text: str, ground: Grounding, count: _Counts, language: str, *, row: bool) -> str:
    """One sentence as it may stand; empty where it may not."""
    markers, bare = _markers(text, ground, count)
    if not bare or _withdrawn(bare, ground, count):
        return ""
    words = content(bare)
    if not words:
        return bare
    count.sentences += 1
    behind = []
    strange = _flag(bare, ground, count)
    if strange:
        behind.append(UNVERIFIED[language].format(names=", ".join(f"`{name}`" for name in strange)))
    resolved, right = _resolved(words, bare, markers, ground, language)
    count.kept += right
    if resolved:
        count.cited += 1
        count.citations.update(dict.fromkeys(resolved))
        behind.append("".join(f"[{marker}]" for marker in resolved))
    else:
        count.inferred += 1
        behind.append(LABEL[language])
    if row and bare.endswith("|"):  # inside the last cell: what stands behind it is not shown
        return f"{bare[:-1].rstrip()} {' '.join(behind)} |"
    return f"{bare} {' '.join(behind)}"


def _withdrawn(text: str, ground: Grounding, count: _Counts) -> bool:
    """Whether the text may not stand; why is counted."""
    if STRUCK in text:
        count.leaked.append(text.replace(STRUCK, "…"))
        return True
    if denied(text, ground.denials):
        count.withdrawn.append(text)
        return True
    return False


def _markers(text: str, ground: Grounding, count: _Counts) -> tuple[list[int], str]:
    """The markers that exist, and the sentence without any, its links and tags made harmless. Code stays as it is."""
    named: list[int] = []
    parts = _CODE.split(text)
    for n in range(0, len(parts), 2):
        plain = _defused(parts[n], ground)
        named += [int(number) for group in _MARKER.findall(plain) for number in re.findall(r"\d+", group)]
        parts[n] = _MARKER.sub("", plain)
    count.markers += len(named)
    count.unknown_markers += sum(marker not in ground.contents for marker in named)
    return [marker for marker in dict.fromkeys(named) if marker in ground.contents], "".join(parts).strip()


def _defused(text: str, ground: Grounding) -> str:
    """No pictures, no tags, no turns of a chat, and no links but those of the sources."""

    def link(match: re.Match[str]) -> str:
        picture, label, address = match.groups()
        if not picture and address and address in ground.addresses:
            return match.group()
        return f"[{label}]" if label.isdigit() else label

    def address(match: re.Match[str]) -> str:
        return match.group() if match.group().rstrip(".,;:!?。，") in ground.addresses else f"`{match.group()}`"

    text = URL.sub(address, _LINK.sub(link, text))
    return _TAG.sub("‹", _TURN.sub("", text))


def _resolved(
    words: frozenset[str], text: str, markers: list[int], ground: Grounding, language: str
) -> tuple[list[int], int]:
    """The sources that bear the sentence out: those named by the model (how many comes second), without one the best
    other. Where a source has none of the names in the sentence, its words must carry it alone; and a case must hold
    nearly as much of it as any other case does."""
    named = names(text)
    share = {}
    for marker, own in ground.contents.items():
        quoted = ground.quoted.get(marker)
        whole = len(words & quoted) / len(quoted) if quoted else 0.0
        share[marker] = max(len(words & own) / len(words), whole if whole >= QUOTED else 0.0)
    most = max((share[marker] for marker in ground.cases), default=0.0)
    kept = []
    for marker in markers:
        if marker in ground.cases and share[marker] < NEARLY * most:
            continue
        has_names = not named or any(stands(name, ground.said[marker]) for name in named)
        if share[marker] >= (CITED if has_names else SUPPORT)[language]:
            kept.append(marker)
    if kept or not share:
        return kept, len(kept)
    best = max(share, key=lambda marker: (share[marker], -marker))
    return ([best] if share[best] >= SUPPORT[language] else []), 0


def _flag(text: str, ground: Grounding, count: _Counts) -> list[str]:
    """Names and numbers that stand in no source, in no pasted text and in no catalogue."""
    found = [name for name in names(text) if not ground.known(name) and not stands(name, ground.everything)]
    urls = [url.rstrip(".,;:!?。，") for url in URL.findall(text)]
    found += [url for url in urls if url not in ground.addresses and url.casefold() not in ground.everything]
    count.flagged.update(dict.fromkeys(found))
    return found
