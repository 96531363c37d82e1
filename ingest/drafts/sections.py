"""The section of a page that a write-up's heading begins. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trainmedic.ingest.drafts.draft import block_lines
from trainmedic.ingest.items import Block
from trainmedic.kb.lazy import regex

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "no_help": (
        *("无效", "没有用", "没用", "误区", "弯路", "排除", "尝试过", "not help", "n't help", "n't work", "not work"),
        *("ruled out", "not the cause", "dead end", "what we tried", "myth"),
    ),
    "fix": (
        *("解决", "修复", "方案", "建议", "实践", "规避"),
        *("solution", "fix", "workaround", "resol", "recommend", "best practice"),
    ),
    "cause": (
        *("原因", "根源", "分析", "原理", "排查", "机制"),
        *("cause", "why", "analysis", "mechanism", "diagnos", "investigat"),
    ),
    "symptom": (
        *("背景", "现象", "描述", "影响"),
        *("symptom", "background", "problem", "issue", "what happened", "overview"),
    ),
    "confirm": (
        *("确认", "验证", "复现", "结论", "总结", "启示"),
        *("confirm", "verif", "reproduc", "conclusion", "summary", "lesson"),
    ),
}
"""Words of headings by section, tried in this order."""
_LABEL = regex(r"[*_]{0,2}(?P<label>[^\W\d][^:：.。,，`*_]{1,23})[*_]{0,2}[:：][*_]{0,2}(?!//)")


def section_of(heading: str) -> str | None:
    heading = heading.casefold().strip()
    named = next((name for name, words in SECTIONS.items() if any(word in heading for word in words)), None)
    # "问题" alone begins the symptom; "初始化问题" is one of several causes.
    return named or ("symptom" if heading.startswith("问题") else None)


def by_section(blocks: Sequence[Block]) -> Iterator[tuple[str, Block]]:
    """Each block with its section: that of the last heading or label ("Cause: …") that begins one, at first the
    symptom. A summary before all others says what was seen."""
    section, begun = "symptom", False
    for block in blocks:
        if named := _begun_by(block):
            section = "symptom" if named == "confirm" and not begun else named
            begun = True
        yield section, block


def _begun_by(block: Block) -> str | None:
    if block.kind == "heading":
        return section_of(block.text)
    label = _LABEL.match(block.text) if block.kind == "text" else None
    return section_of(label["label"]) if label is not None else None


def prose_lines(blocks: Sequence[Block]) -> Iterator[tuple[str, int, str]]:
    """Each line of text and lists with its section and its number in `Draft.lines`."""
    first = 2  # the title is line 1
    for section, block in by_section(blocks):
        lines = block_lines(block)
        if block.kind in ("text", "item"):
            yield from ((section, number, line) for number, line in enumerate(lines, first))
        first += len(lines)
