"""An answer as Markdown for a chat bubble. Pure.

A bubble holds clean Markdown: no HTML, no picture, no link but to the evidence beside the chat. What a user pasted is
shown as it is, character for character; what a model wrote can neither load anything nor cover the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainmedic.service.composition import phrases
from trainmedic.ui.chat.evidence import lines, sorted_findings
from trainmedic.ui.chat.texts import Language, words

INLINE = re.compile(r"([\\`*_\[\]<>&~|!$])|(:)(?=//)|(?<=www)(\.)|(@)|(?<=mailto)(:)|(?<=xmpp)(:)", re.IGNORECASE)
"""Punctuation that begins something within a line: behind a backslash it is text and nothing else (CommonMark 2.4)."""
START = re.compile(r"^(\d{0,9})([#+=.)-])")
"""What begins a heading, a list or a rule at the start of a line."""
FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})")
TICKS = re.compile("`+")
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
PICTURE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
LINK = re.compile(r"\[([^\]\n]*)\]\([^)\n]*\)")
MARKER = re.compile(r"\[(\d{1,3})\]")
HALF = re.compile(r"\[\d{0,3}$")
RAW = {
    "&": "&amp;",
    "<": "&lt;",
    "://": r"\://",
    "]:": r"]\:",
    "](": r"]\(",
    "![": r"!\[",
    "@": r"\@",
    "www.": r"www\.",
    "mailto:": r"mailto\:",
    "xmpp:": r"xmpp\:",
    "`": r"\`",
}
"""What would become HTML, an entity, a link or a picture, and how it stays text."""
RAW_TEXT = re.compile("|".join(re.escape(text) for text in RAW), re.IGNORECASE)
TABLE_RULE = re.compile(r"[\s>|:-]+$")
DIFF = re.compile(r"^(`{3,})diff\n(--- a/.*?)\n\1[ ]*$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"\n+(`{3,})diff\n(?!--- a/).*?\n\1[ ]*(?:\n+(\[\d+\])[ ]*)?(?=\n|$)", re.DOTALL)
"""A case's own example of the change, with the marker behind it."""
MANY_LINES = 8
"""A question of more lines than this, or an indented one, is shown as code."""
REFUTED = 3
"""What does not help, in the chat; the rest stands beside it."""


def question(text: str, files: Iterable[tuple[str, int]] = (), language: Language = "en") -> str:
    """What the user asked, verbatim, and the names of what came with it with their lines."""
    parts = [verbatim(text.strip("\n"))] if text.strip() else []
    names = [f"{code(name)} {lines(count, words(language))}" for name, count in files]
    return "\n\n".join([*parts, " · ".join(names)] if names else parts)


def verbatim(text: str) -> str:
    """Markdown that shows ``text`` as it is; what its writer fenced is code, without the fences."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    shown: list[str] = []
    for info, given in pasted(text.split("\n")):
        if info is not None:
            shown.append(_block([info, *given]))
        elif any(line.strip() for line in given):
            shown.append(_prose(given))
    return "\n\n".join(shown)


def pasted(given: Sequence[str]) -> list[tuple[str | None, list[str]]]:
    """Lines as (language of a fence, its lines) pairs, in order; None for lines outside of fences.

    A fence that nothing closes reaches to the end. What stands behind a fence and is no language is text before it.
    """
    found: list[tuple[str | None, list[str]]] = [(None, [])]
    fence = ""
    for line in given:
        before, fence = fence, _fence_after(line, fence)
        if bool(before) == bool(fence):
            found[-1][1].append(line)
        elif before:
            found.append((None, []))
        else:
            info = FENCE.sub("", line).strip()
            found[-1][1].extend([] if info == _info(line) else [info])
            found.append((_info(line), []))
    return found


def _prose(given: Sequence[str]) -> str:
    """Lines without a fence: text, or code where they look like it."""
    if len(given) > MANY_LINES or any(line[:1] in (" ", "\t") for line in given):
        return fenced("\n".join(given).strip("\n"))
    shown = [START.sub(r"\1\\\2", INLINE.sub(lambda m: f"\\{m[0]}", line.rstrip())) for line in given]
    paragraphs = "\n".join(shown).split("\n\n")
    return "\n\n".join(each.strip("\n").replace("\n", "\\\n") for each in paragraphs if each.strip("\n"))


def fenced(text: str) -> str:
    """A code block that ends where it should, whatever is in it."""
    return _block(["text", *text.split("\n")])


def code(text: str) -> str:
    """Inline code of any text."""
    text = " ".join(text.split())
    ticks = "`" * (1 + max((len(run) for run in TICKS.findall(text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def answer(found: Mapping[str, Any], language: Language) -> str:
    """The whole answer: its verdict, then its text without what the evidence shows better.

    ``language`` is the page's; the text stays in the answer's own.
    """
    text = beside(without_receipt(found["answer"]), found, language)
    return f"{heading(found, language)}\n\n{safe(f'{title(found, text)}{text}', markers(found))}"


def title(found: Mapping[str, Any], text: str) -> str:
    """The first cause's title with its marker, where a text begins without one, as a model's may."""
    if found["verdict"] not in ("answered", "no_fault") or not found["causes"]:
        return ""
    cause = found["causes"][0]
    if cause["title"] in text[: 2 * len(cause["title"]) + 80]:
        return ""
    cited = (each["marker"] for each in found["citations"] if each["id"] == cause["case_id"])
    return f"**{cause['title']}**" + "".join(f" [{marker}]" for marker in cited) + "\n\n"


def heading(found: Mapping[str, Any], language: Language) -> str:
    """The verdict as the first line; the page's style makes a chip of it."""
    t = words(language)
    line = t[f"verdict_{found['verdict']}"]
    if found["verdict"] in ("answered", "no_fault") and found["causes"]:
        line += f" · {t['confidence_' + found['causes'][0]['confidence']]}"
    return f"## [{line}](#tm-v-{found['verdict']})"


def streamed(found: Mapping[str, Any], text: str, language: Language) -> str:
    """The text as far as it has come. A marker that has only begun waits for its end."""
    shown = HALF.sub("", without_receipt(text))
    name = title({**found, "citations": ()}, shown)  # its marker may be another one in the end
    return f"{heading(found, language)}\n\n{safe(f'{name}{shown}', frozenset())}"


def markers(found: Mapping[str, Any]) -> frozenset[int]:
    """The citation markers that point at something."""
    return frozenset(citation["marker"] for citation in found["citations"])


def without_receipt(text: str) -> str:
    """The text without the quoted lines at its head: the page shows what was read in its own place."""
    rest = text.split("\n")
    while rest and (rest[0].startswith("> ") or not rest[0].strip()):
        rest.pop(0)
    return "\n".join(rest)


def beside(text: str, found: Mapping[str, Any], language: Language) -> str:
    """The text with links in place of the parts that the evidence shows better."""
    t = words(language)
    related, aside, _ = sorted_findings(found)
    patch = f"**[{t['see_patch']}](#tm-patch)**"
    kept: list[str] = []
    for title, body in sections(text):
        name = _heading_name(title)
        if name == "seen" and related:
            link = f"[{t['see_findings']}](#tm-findings)"
            body = "\n".join([*(line for line in body.split("\n") if line.startswith("- ")), "", link])
        elif name == "listed" and aside:
            title, body = "", f"[{t['see_listed'].format(count=len(aside))}](#tm-findings)"
        elif name == "refuted":
            body = _first_items(body, t["see_refuted"])
        if name in ("fix", "patch"):
            body = DIFF.sub(lambda _: patch, body)
            if patch in body:  # the user's own text is a better example than the case's
                body = EXAMPLE.sub(lambda match: f" {match[2] or ''}", body)
            body = "\n".join(line for line in body.split("\n") if not _is_recheck(line))
        # What to do stands before why: people act on it first.
        place = 1 if name == "fix" and kept and found["verdict"] == "answered" else len(kept)
        kept.insert(place, f"{title}\n\n{body.strip()}" if title else body.strip())
    return "\n\n".join(part for part in kept if part)


def sections(text: str) -> list[tuple[str, str]]:
    """The text as (heading line, body) pairs, headings inside of code blocks left alone; the first has none."""
    found: list[tuple[str, list[str]]] = [("", [])]
    fence = ""
    for line in text.split("\n"):
        fence = _fence_after(line, fence)
        if not fence and line.startswith("### "):
            found.append((line, []))
        elif not found[-1][0] and _is_sure(line):
            continue  # the verdict's line says it
        else:
            found[-1][1].append(line)
    return [(title, "\n".join(body).strip("\n")) for title, body in found if title or body]


def safe(text: str, known: frozenset[int]) -> str:
    """Markdown of our own or of a model, as far as it may be shown: see the module's docstring.

    Markers in ``known`` become links to their source; links into the evidence stay. Code stays as it is, so what is
    code here must be code to every reader of Markdown: blocks get fences that nothing inside can close, ticks without
    a partner are text, and there are no tables, whose cells would cut a code span in two.
    """
    made: list[str] = []
    block: list[str] | None = None
    fence = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        before, fence = fence, _fence_after(line, fence)
        if fence and block is not None:
            block.append(line)
        elif fence:
            block = [_info(line)]
        elif before and block is not None:
            made.append(_block(block))
            block = None
        else:
            made.append(_safe_line(line, known))
    if block is not None:
        made.append(_block(block))
    return "\n".join(made)


def _block(block: Sequence[str]) -> str:
    """A code block: its language, then its lines."""
    info, *body = block
    fence = "`" * max(3, 1 + max((len(run) for line in body for run in TICKS.findall(line)), default=0))
    return "\n".join([f"{fence}{info}", *body, fence])


def _safe_line(line: str, known: frozenset[int]) -> str:
    if TABLE_RULE.match(line) and "|" in line and "-" in line:
        return line.replace("|", r"\|")
    parts, at = [], 0
    for match in CODE.finditer(line):
        before = line[at : match.start()]
        slashes = len(before) - len(before.rstrip("\\"))  # one more would make the tick a character
        parts += [_safe_text(before, known) + "\\" * slashes, match[0]]
        at = match.end()
    return "".join([*parts, _safe_text(line[at:], known)])


def _safe_text(text: str, known: frozenset[int]) -> str:
    """Text between code spans."""
    parts, at = [], 0
    for match in re.finditer(r"\[([^\]\n]*)\]\((#tm-[a-z]+(?:-[a-z_]+)?)\)", text):  # written by this module
        parts += [_plain_text(text[at : match.start()], known), f"[{_escaped(match[1])}]({match[2]})"]
        at = match.end()
    return "".join([*parts, _plain_text(text[at:], known)])


def _plain_text(text: str, known: frozenset[int]) -> str:
    text = _escaped(LINK.sub(r"\1", PICTURE.sub(r"\1", text)))
    return MARKER.sub(lambda m: f"[{m[1]}](#tm-c{m[1]})" if int(m[1]) in known else f"\\[{m[1]}\\]", text)


def _escaped(text: str) -> str:
    return RAW_TEXT.sub(lambda match: RAW[match[0].lower()], text)


def _info(line: str) -> str:
    """A fence's language, and nothing else that may stand there."""
    rest = FENCE.sub("", line).strip()
    return rest if re.fullmatch(r"[A-Za-z0-9+-]{0,20}", rest) else ""


def _fence_after(line: str, fence: str) -> str:
    """The open fence after ``line``, empty where none is open."""
    match = FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return "" if match[2][0] == "`" and "`" in line[match.end() :] else match[2]  # ticks behind ticks: a code span
    closes = match[2][0] == fence[0] and len(match[2]) >= len(fence) and not line.strip().strip(match[2][0])
    return "" if closes else fence


def _heading_name(title: str) -> str:
    text = title.removeprefix("### ").strip()
    return next((name for name, each in phrases.HEADINGS.items() if text in (each.en, each.zh)), "")


def _is_sure(line: str) -> bool:
    return line.startswith(tuple(each.partition("{")[0] for each in (phrases.SURE.en, phrases.SURE.zh)))


def _is_recheck(line: str) -> bool:
    return line.startswith(tuple(each.partition("{")[0] for each in (phrases.PATCH.en, phrases.PATCH.zh)))


def _first_items(body: str, more: str) -> str:
    items: Sequence[str] = re.split(r"\n(?=- )", body)
    if len(items) <= REFUTED + 1:
        return body
    return "\n".join([*items[:REFUTED], "", f"[{more.format(count=len(items) - REFUTED)}](#tm-refuted)"])
