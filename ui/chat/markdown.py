"""An answer as Markdown for a chat bubble. Pure.

A bubble holds clean Markdown: no HTML, no picture, no link but to the evidence beside the chat. What a user pasted is
shown as it is, character for character; what a model wrote can neither load anything nor cover the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmedic.service.answer import Answer, Section, markdown
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
EXAMPLE = re.compile(r"\n+`{3,}diff\n.*?\n`{3,}[ ]*(?:\n+(\[\d+\])[ ]*)?(?=\n|$)", re.DOTALL)
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


def answer(found: Answer, language: Language) -> str:
    """The whole answer: its verdict, then its sections without what the evidence shows better.

    ``language`` is the page's; the text stays in the answer's own.
    """
    parts = _under_headings(found, language)
    fix = next((part for part in parts[1:] if part[0].kind == "fix"), None)
    if fix is not None and found.verdict == "answered":  # what to do comes before why: people act on it first
        parts.remove(fix)
        parts.insert(1, fix)
    text = markdown(section for part in parts for section in part)
    name = "" if any(section.kind == "lead" for section in found.sections) else title(found, text, markers(found))
    return f"{heading(found, language)}\n\n{safe(f'{name}{text}', markers(found))}"


def title(found: Answer, text: str, known: frozenset[int]) -> str:
    """The first cause's title with its marker, if a model's text begins without it."""
    if found.verdict not in ("answered", "no_fault") or not found.causes:
        return ""
    cause = found.causes[0]
    if cause.title in text[: 2 * len(cause.title) + 80]:
        return ""
    cited = (each.marker for each in found.citations if each.id == cause.case_id and each.marker in known)
    return f"**{cause.title}**" + "".join(f" [{marker}]" for marker in cited) + "\n\n"


def heading(found: Answer, language: Language) -> str:
    """The verdict as the first line; the page's style makes a chip of it."""
    t = words(language)
    line = t[f"verdict_{found.verdict}"]
    if found.verdict in ("answered", "no_fault") and found.causes:
        line += f" · {t['confidence_' + found.causes[0].confidence]}"
    return f"## [{line}](#tm-v-{found.verdict})"


def streamed(found: Answer, text: str, language: Language) -> str:
    """The text as far as it has come. A marker that has only begun waits for its end."""
    shown = HALF.sub("", text.lstrip("\n"))
    name = title(found, shown, frozenset())  # its marker may be another one in the end
    return f"{heading(found, language)}\n\n{safe(f'{name}{shown}', frozenset())}"


def markers(found: Answer) -> frozenset[int]:
    """The citation markers that point at something."""
    return frozenset(citation.marker for citation in found.citations)


def _under_headings(found: Answer, language: Language) -> list[list[Section]]:
    """The sections as the chat shows them, each heading with the sections that continue it."""
    t = words(language)
    related, aside, _ = sorted_findings(found)
    patched = any(section.kind == "diff" for section in found.sections)
    parts: list[list[Section]] = [[]]
    for section in found.sections:
        if section.kind in ("receipt", "confidence"):
            continue  # the page shows the receipt in its own place, and the heading says the confidence
        if section.kind == "seen" and related:
            link = f"[{t['see_findings']}](#tm-findings)"
            section = replace(section, body="\n".join([*_bullets(section.items), "", link]))
        elif section.kind == "listed" and aside:
            link = f"[{t['see_listed'].format(count=len(aside))}](#tm-findings)"
            section = replace(section, heading="", body=link)
        elif section.kind == "refuted" and len(section.items) > REFUTED + 1:
            link = f"[{t['see_refuted'].format(count=len(section.items) - REFUTED)}](#tm-refuted)"
            section = replace(section, body="\n".join([*_bullets(section.items[:REFUTED]), "", link]))
        elif section.kind == "diff":
            section = replace(section, body=f"**[{t['see_patch']}](#tm-patch)**")
        elif section.kind == "fix" and patched:  # the user's own text is a better example than the case's
            section = replace(section, body=EXAMPLE.sub(lambda match: f" {match[1] or ''}", section.body).strip())
        if section.heading or section.kind == "listed":
            parts.append([])
        parts[-1].append(section)
    return [part for part in parts if part]


def _bullets(items: Sequence[str]) -> list[str]:
    return [f"- {item}" for item in items]


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
