"""An answer as Slack messages: Block Kit blocks under Slack's limits. Pure.

Limits from Slack's Block Kit reference: 50 blocks a message, 12,000 characters over all Markdown blocks, 2,000 a
button's value. All blocks together are refused somewhat above 13,000 characters (bolt-js issue 2509), so that a
message is filled to `MESSAGE` and the rest goes into the next one. Nothing is cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as percent

from trainmedic.kb.model.report import Text
from trainmedic.service.answer import Answer
from trainmedic.service.answer import markdown as markdown_of
from trainmedic.service.composition.messages import messages as answer_messages
from trainmedic.ui.present.slack_text import escape, fallback, link, neutral, split_markdown, wrapped

Block = dict[str, Any]
MESSAGE = 11_500
"""Characters of one message, all blocks together."""
BODY = 11_000
"""Characters of one Markdown block: room is left for the fences that a split adds."""
BLOCKS = 45
ELEMENT = 1_000
"""Characters of one line of small print; a longer line is continued in the next."""
ELEMENTS = 10
FEEDBACK, RESOLVED, HUMAN, SHARE = (f"trainmedic_{name}" for name in ("feedback", "resolved", "human", "share"))
"""What clicks are called."""
GROUNDED = ("answered", "no_fault")
"""Verdicts that rest on a case or on a clean check."""

VERDICTS = {
    "answered": Text(en="🔎 Cause found", zh="🔎 已找到原因"),
    "need_input": Text(en="❓ One more fact is needed", zh="❓ 还需要一个信息"),
    "not_in_kb": Text(en="📭 Not in the knowledge base", zh="📭 知识库中没有"),
    "no_fault": Text(en="✅ Nothing wrong found", zh="✅ 未发现问题"),
}
CONFIDENCE = Text(en="confidence: {confidence}", zh="置信度：{confidence}")
EVIDENCE = Text(en="evidence: {grade}", zh="证据：{grade}")
WRITTEN = Text(
    en="Text by {model}, checked sentence by sentence; verdict, findings and patch are the program's.",
    zh="文字由 {model} 撰写并逐句核对；结论、检查结果和补丁由程序给出。",
)
SECRET = Text(
    en="⚠️ A secret still stands in the Slack message itself: delete it there and replace it ({kinds}).",
    zh="⚠️ 密钥仍留在 Slack 消息中：请在那里删除并更换（{kinds}）。",
)
NOT_READ = Text(en="Not read: {names}.", zh="未读取：{names}。")
OPEN = Text(en="Open this answer in the browser", zh="在浏览器中打开此回答")
BUTTONS = {
    "up": Text(en="Helped", zh="有帮助"),
    "down": Text(en="Did not help", zh="没有帮助"),
    "resolved": Text(en="Mark resolved", zh="标记为已解决"),
    "human": Text(en="Ask a human", zh="请人协助"),
    "share": Text(en="Share", zh="分享"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One message: blocks, and the text for notifications and screen readers."""

    text: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a message says besides the answer itself.

    ``public_url`` is where the web pages are, empty where nobody can open them. ``not_read`` names files with the
    reason, ``notes`` are further remarks. ``human`` and ``share`` say whether those buttons are drawn, ``asker`` who
    asked.
    """

    public_url: str = ""
    not_read: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    human: bool = False
    share: bool = False
    asker: str = ""


def render_answer(answer: Answer, extras: Extras = Extras()) -> tuple[Reply, ...]:
    """The whole answer as one message or, where it is long, several: text, then small print, then buttons."""
    body = f"{verdict_line(answer)}\n\n{text_of(answer)}"
    blocks = [markdown(piece) for piece in split_markdown(neutral(body), BODY)]
    return packed([*blocks, *footer(answer, extras)], fallback(body))


def footer(answer: Answer, extras: Extras) -> list[Block]:
    """What stands below the text: sources, receipt, link, buttons."""
    return [*small_print(sources(answer, extras)), *small_print(remarks(answer, extras)), *buttons(answer, extras)]


def packed(blocks: Sequence[Block], text: str) -> tuple[Reply, ...]:
    """The blocks in as few messages as Slack's limits allow, in order. The buttons never stand alone."""
    groups: list[list[Block]] = [[]]
    room = MESSAGE
    for block in blocks:
        size = weight(block)
        if groups[-1] and (size > room or len(groups[-1]) >= BLOCKS) and not is_button(block):
            groups.append([])
            room = MESSAGE
        groups[-1].append(block)
        room -= size
    return tuple(Reply(text=text, blocks=tuple(group)) for group in groups)


def verdict_line(answer: Answer) -> str:
    """``🔎 Cause found · confidence: high · evidence: reproduced``, in Markdown."""
    language = answer.language
    parts = [f"**{VERDICTS[answer.verdict].get(language)}**"]
    if answer.verdict in GROUNDED and answer.causes:
        first = answer.causes[0]
        confidence = answer_messages(f"confidence.{first.confidence}", language)
        grade = answer_messages(f"grade.{first.evidence_grade}", language)
        parts.append(CONFIDENCE.get(language).format(confidence=confidence))
        parts.append(EVIDENCE.get(language).format(grade=grade))
    return " · ".join(parts)


def lead(answer: Answer) -> str:
    """What is certain before a text is written: the verdict and the first cause, in Markdown."""
    causes = answer.causes
    title = f"\n\n**{causes[0].title}**" if causes and answer.verdict in GROUNDED else ""
    return neutral(f"{verdict_line(answer)}{title}\n\n")


def text_of(answer: Answer) -> str:
    """The answer's Markdown without what this channel shows elsewhere: receipt and confidence."""
    return markdown_of(section for section in answer.sections if section.kind not in ("receipt", "confidence"))


def receipt_lines(answer: Answer) -> list[str]:
    """The receipt as plain lines."""
    lines = (line for section in answer.sections if section.kind == "receipt" for line in section.items)
    return [line.replace("`", "") for line in lines]


def sources(answer: Answer, extras: Extras) -> list[str]:
    """One line for each citation, in mrkdwn."""
    lines = []
    for item in answer.citations:
        url = item.url
        if item.kind == "case" and extras.public_url:
            url = f"{extras.public_url}/knowledge/?case={percent(item.id)}"
        shown = link(url, item.title) if url else escape(item.title)
        name = "" if item.kind == "input" else f" ({escape(item.id)})"
        lines.append(f"[{item.marker}] {shown}{name}")
    return lines


def remarks(answer: Answer, extras: Extras) -> list[str]:
    """Receipt, files that were not read, secrets, notices, the link, and who wrote it; in mrkdwn."""
    language = answer.language
    joiner = "、" if language == "zh" else ", "
    lines = [escape(line) for line in receipt_lines(answer)]
    if extras.not_read:
        lines.append(escape(NOT_READ.get(language).format(names=joiner.join(extras.not_read))))
    lines += [escape(note) for note in extras.notes]
    secrets = [item.kind for item in answer.receipt.masked if item.kind != "email"]
    if secrets:
        lines.append(escape(SECRET.get(language).format(kinds=joiner.join(secrets))))
    lines += [escape(notice).replace("`", "") for notice in answer.notices]
    if answer.mode == "llm":
        lines.append(escape(WRITTEN.get(language).format(model=answer.model or "?")))
    if extras.public_url:
        lines.append(link(f"{extras.public_url}/?answer={percent(answer.id)}", OPEN.get(language)))
    return lines


def small_print(lines: Sequence[str]) -> list[Block]:
    """Lines as context blocks, as many as needed."""
    elements = [{"type": "mrkdwn", "text": part} for line in lines for part in wrapped(line, ELEMENT)]
    return [
        {"type": "context", "elements": elements[start : start + ELEMENTS]}
        for start in range(0, len(elements), ELEMENTS)
    ]


def buttons(answer: Answer, extras: Extras) -> list[Block]:
    """Feedback, and what else can be done with the answer."""
    language, id = answer.language, answer.id
    named = {"answer": id, "asker": extras.asker, "language": language}
    thumbs = {
        "type": "feedback_buttons",
        "action_id": FEEDBACK,
        "positive_button": _half("up", named, language),
        "negative_button": _half("down", named, language),
    }
    drawn = [_button(RESOLVED, "resolved", named, language)]
    if extras.human:
        drawn.append(_button(HUMAN, "human", named, language))
    if extras.share:
        drawn.insert(0, _button(SHARE, "share", named, language))
    return [{"type": "context_actions", "elements": [thumbs]}, {"type": "actions", "elements": drawn}]


def markdown(text: str) -> Block:
    """A block of Markdown."""
    return {"type": "markdown", "text": text}


def section(text: str) -> Block:
    """A block of mrkdwn; the text is escaped already."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, "expand": True}


def is_button(block: Block) -> bool:
    """Whether this is a row of buttons."""
    return block["type"] in ("actions", "context_actions")


def weight(block: Block) -> int:
    """Characters of a block that count: its texts. Buttons have their room reserved by `MESSAGE`."""
    if is_button(block):
        return 0
    if block["type"] == "context":
        return sum(len(element["text"]) for element in block["elements"])
    text = block["text"]
    return len(text if isinstance(text, str) else text["text"])


def _half(reaction: str, named: Mapping[str, str], language: str) -> Block:
    words = BUTTONS[reaction].get(language)
    return {
        "text": {"type": "plain_text", "text": words},
        "value": json.dumps({**named, "reaction": reaction}),
        "accessibility_label": words,
    }


def _button(action_id: str, name: str, named: Mapping[str, str], language: str) -> Block:
    label = {"type": "plain_text", "text": BUTTONS[name].get(language)}
    return {"type": "button", "action_id": action_id, "text": label, "value": json.dumps(dict(named))}


_STYLE = re.compile(r"\*\*|`|^#+ |^> ?", re.MULTILINE)


def plain(markdown_text: str) -> str:
    """Markdown without its marks, for one line of a summary."""
    return " ".join(_STYLE.sub("", markdown_text).split())
