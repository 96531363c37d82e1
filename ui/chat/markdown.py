"""An answer as Markdown for a chat bubble. Pure.

A bubble holds clean Markdown: no HTML, no images, no links except to the evidence beside the chat. The user's text is
shown character for character; a model's text can neither load anything nor cover the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from markdown_it import MarkdownIt
from markupsafe import Markup

from trainmedic.kb.fences import fence_after, fence_around, fence_of
from trainmedic.kb.lazy import regex
from trainmedic.service.answer.schema import Answer, Section, StepView, markdown
from trainmedic.service.answering import Stage
from trainmedic.ui.chat.evidence import lines, sorted_findings, spoken, ticked
from trainmedic.ui.chat.texts import Language, words
from trainmedic.ui.present.verdict import shown_verdict

INLINE = regex(r"([\\`*_\[\]<>&~|!$])|(:)(?=//)|(?<=www)(\.)|(@)|(?<=mailto)(:)|(?<=xmpp)(:)", re.IGNORECASE)
"""Punctuation that begins something within a line: behind a backslash it is text and nothing else (CommonMark 2.4)."""
START = regex(r"^(\d{0,9})([#+=.)-])")
"""Signs that begin a heading, a list or a rule at the start of a line."""
CODE = regex(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
LINK = regex(r"!?\[([^\[\]\n]*)\]\([^)\n]*\)")
MARKER = regex(r"\[(\d{1,3})\]")
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
"""Signs that would become HTML, an entity, a link or an image, and their escapes."""
RAW_TEXT = regex("|".join(re.escape(text) for text in RAW), re.IGNORECASE)
EXAMPLE = regex(r"\n+`{3,}diff\n.*?\n`{3,}[ ]*(?:\n+(\[\d+\])[ ]*)?(?=\n|$)", re.DOTALL)
"""A case's own example of the change, with the marker after it."""
MANY_LINES = 8
"""A question of more lines than this, or an indented one, is shown as code."""
LONGEST_SHOWN, SHOWN_LINES = 14, 10
"""Lines or files of a question that are shown whole, and how many of more."""
# A team's own pages and drafts come the same way as ours: no HTML, nothing that loads.
_PAGE = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def page_html(text: str) -> Markup:
    """The text of a knowledge page or draft as HTML."""
    # A block that scrolls must be reachable by the keyboard.
    return Markup(_PAGE.render(text).replace("<pre>", '<pre tabindex="0">'))


def message_html(text: str, copy: str) -> Markup:
    """A message of the chat as HTML, its code blocks each with a button to copy it, named ``copy``."""
    button = Markup('<button type="button" class="tm-button" data-tm-copy-code>{}</button>').format(copy)
    wrapped = page_html(text).replace("<pre ", Markup('<div class="code_wrap">{}<pre ').format(button))
    return wrapped.replace("</pre>", Markup("</pre></div>"))


def question(text: str, files: Iterable[tuple[str, int]] = (), language: Language = "en") -> str:
    """The user's question, verbatim, and the names of its files with their line counts, if they have lines. Of a paste
    and of many files the beginning: the evidence has the rest."""
    t = words(language)
    rows = text.strip("\n").split("\n")
    left = len(rows) - SHOWN_LINES if len(rows) > LONGEST_SHOWN else 0
    parts = [verbatim("\n".join(rows[: len(rows) - left]))] if text.strip() else []
    parts += [t["more_lines"].format(count=left)] if left else []
    # A count stays on the line of its unit.
    names = [code(name) + (f" {lines(count, t)}".replace(" ", "\xa0") if count else "") for name, count in files]
    if len(names) > LONGEST_SHOWN:
        names[SHOWN_LINES:] = [t["more_files"].format(count=len(names) - SHOWN_LINES)]
    return "\n\n".join([*parts, " · ".join(names)] if names else parts)


def verbatim(text: str) -> str:
    """Markdown that shows ``text`` as it is; fenced parts become code blocks."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    parts: list[str] = []
    for info, block in pasted(text.split("\n")):
        if info is not None:
            parts.append(_block([info, *block]))
        elif any(line.strip() for line in block):
            parts.append(_prose(block))
    return "\n\n".join(parts)


def pasted(text_lines: Sequence[str]) -> list[tuple[str | None, list[str]]]:
    """Lines as (fence language, lines) pairs, in order; None for lines outside fences.

    An unclosed fence reaches to the end. Text after a fence that is not a language counts as text before it.
    """
    parts: list[tuple[str | None, list[str]]] = [(None, [])]
    fence = ""
    for line in text_lines:
        before, fence = fence, fence_after(line, fence)
        if bool(before) == bool(fence):
            parts[-1][1].append(line)
        elif before:
            parts.append((None, []))
        else:
            info = fence_of(line)[1]
            parts[-1][1].extend([] if info == _info(line) else [info])
            parts.append((_info(line), []))
    return parts


def _prose(text_lines: Sequence[str]) -> str:
    """Lines without a fence: text, or code if they look like it."""
    if len(text_lines) > MANY_LINES or any(line[:1] in (" ", "\t") for line in text_lines):
        return fenced("\n".join(text_lines).strip("\n"))
    escaped = [START.sub(r"\1\\\2", INLINE.sub(lambda m: f"\\{m[0]}", line.rstrip())) for line in text_lines]
    paragraphs = "\n".join(escaped).split("\n\n")
    return "\n\n".join(paragraph.strip("\n").replace("\n", "\\\n") for paragraph in paragraphs if paragraph.strip("\n"))


def fenced(text: str) -> str:
    """A code block whose fence no line of ``text`` can close."""
    return _block(["text", *text.split("\n")])


def code(text: str) -> str:
    text = " ".join(text.split())
    ticks = fence_around(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def answer(view: Answer, language: Language) -> str:
    """The whole answer: its verdict, then its sections except those that the evidence shows better.

    ``language`` is the page's; every word of an answer is in its own. Details come after a link that unfolds them.
    """
    language = spoken(view, language)
    sections = list(_sections(view, language))
    details = [section for section in sections if section.folded]
    shown = [section for section in sections if not section.folded]
    if details and shown:
        names = " · ".join(dict.fromkeys(section.heading for section in details if section.heading))
        shown.append(Section(kind="fold", heading=f"[{names}](#tm-fold)", body=""))
    text = markdown((*shown, *details))
    name = "" if any(section.kind == "lead" for section in view.sections) else title(view, text, markers(view))
    return f"{heading(view, language)}\n\n{safe(f'{name}{text}', markers(view))}"


def title(view: Answer, text: str, known: frozenset[int]) -> str:
    """The first cause's title with its marker, unless a model's text begins with it."""
    if view.verdict not in ("answered", "no_fault") or not view.causes:
        return ""
    cause = view.causes[0]
    if cause.title in text[: 2 * len(cause.title) + 80]:
        return ""
    cited = (item.marker for item in view.citations if item.id == cause.case_id and item.marker in known)
    return f"**{cause.title}**" + "".join(f" [{marker}]" for marker in cited) + "\n\n"


def heading(view: Answer, language: Language) -> str:
    """The verdict as the first line, which the page's style turns into a chip."""
    t = words(spoken(view, language))
    name = shown_verdict(view)
    line = t[f"verdict_{name}"]
    if name in ("answered", "no_fault") and view.causes:
        line += f" · {t['confidence_' + view.causes[0].confidence]}"
    return f"## [{line}](#tm-v-{view.verdict}){_basis(view, t)}"


def _basis(view: Answer, t: Mapping[str, str]) -> str:
    """Whether a model's first cause is a known case or its own, and how far it is proved, as a second chip."""
    if view.mode != "llm" or not view.causes or view.verdict not in ("answered", "need_input", "no_fault"):
        return ""
    cause = view.causes[0]
    return f" [{t['origin_' + cause.origin]} · {t['support_' + cause.support]}](#tm-s-{cause.support})"


def streamed(view: Answer, text: str, language: Language) -> str:
    """The text so far, without an incomplete marker at its end."""
    so_far = text.lstrip("\n")
    # Half a marker would flash up as plain text until its other half arrives.
    before, bracket, digits = so_far.rpartition("[")
    if bracket and len(digits) <= 3 and (not digits or digits.isdecimal()):
        so_far = before
    name = title(view, so_far, frozenset())  # its marker may be another one in the end
    return f"{heading(view, language)}\n\n{safe(f'{name}{so_far}', frozenset())}"


def working(view: Answer, stages: Sequence[Stage], steps: Sequence[StepView], language: Language) -> str:
    """A diagnosis under way by a model: what was read, what it weighs and looks up, and what was proved."""
    t = words(spoken(view, language))
    names = t["reasons_joiner"].join(item.name for item in view.receipt.inputs if item.name) or t["working_question"]
    fired = sum(finding.status == "fired" for finding in view.findings)
    text = [t["working_read"].format(names=_plain_text(names, frozenset()), count=fired)]
    proved = next((stage for stage in reversed(stages) if stage.supports), None)
    for stage in (proved,) if proved is not None else stages[:1]:
        text.append(t["working_proved" if stage.supports else "working_weighs"])
        labels = [f" · [{t['support_' + name]}](#tm-s-{name})" for name in stage.supports] or [""] * len(stage.titles)
        pairs = zip(stage.titles, labels, strict=True)
        text.append("\n".join(f"- {_plain_text(title, frozenset())}{label}" for title, label in pairs))
    text += [
        t["working_looks_up"].format(number=step.number, what=_plain_text(step.what, frozenset()))
        for step in steps[-1:]
    ]
    name = "again" if proved is not None and proved.again else "writes" if proved is not None else "asks"
    text += (t[f"working_{name}"],) if stages else ()
    return "\n\n".join(text)


def markers(view: Answer) -> frozenset[int]:
    return frozenset(citation.marker for citation in view.citations)


def _sections(view: Answer, language: Language) -> Iterator[Section]:
    """The sections as the chat shows them."""
    t = words(language)
    related, aside, _ = sorted_findings(view)
    patched = any(section.kind == "diff" for section in view.sections)
    for section in view.sections:
        if section.kind in ("receipt", "confidence"):
            continue  # the page shows the receipt in its own place, and the heading says the confidence
        if section.kind == "seen" and section.folded and related:
            section = replace(section, body=f"[{t['see_findings']}](#tm-findings)")
        elif section.kind == "listed" and aside:
            link = f"[{t['see_listed'].format(count=len(aside))}](#tm-findings)"
            section = replace(section, body=link)
        elif section.kind == "aside":
            continue  # the patches of what is only noticed stand beside the chat
        elif section.kind == "fix" and patched:  # the user's own text is a better example than the case's
            section = replace(section, body=EXAMPLE.sub(lambda match: f" {match[1] or ''}", section.body).strip())
        yield section


def safe(text: str, known: frozenset[int]) -> str:
    """Markdown of ours or of a model, made safe to show: see the module's docstring.

    Markers in ``known`` become links to their source; links into the evidence stay. Code is kept, so it must be code
    to every Markdown reader: blocks get fences that nothing inside can close, unpaired ticks are escaped, and tables
    are not allowed, as their cells would cut a code span in two.
    """
    output: list[str] = []
    block: list[str] | None = None
    fence = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        before, fence = fence, fence_after(line, fence)
        if fence and block is not None:
            block.append(line)
        elif fence:
            block = [_info(line)]
        elif before and block is not None:
            output.append(_block(block))
            block = None
        else:
            output.append(_safe_line(line, known))
    if block is not None:
        output.append(_block(block))
    return "\n".join(output)


def _block(block: Sequence[str]) -> str:
    """A code block: its language, then its lines."""
    info, *body = block
    fence = fence_around("\n".join(body))
    return "\n".join([f"{fence}{info}", *body, fence])


def _safe_line(line: str, known: frozenset[int]) -> str:
    if {"|", "-"} <= set("".join(line.split())) <= set(">|:-"):  # the rule below a table's head
        return line.replace("|", r"\|")
    parts, at = [], 0
    for match in CODE.finditer(line := ticked(line)):
        before = line[at : match.start()]
        # An escaped tick is not code in Markdown, so the slashes before it are doubled to keep the span code.
        slashes = len(before) - len(before.rstrip("\\"))  # one more would make the tick a character
        parts += [_safe_text(before, known) + "\\" * slashes, match[0]]
        at = match.end()
    return "".join([*parts, _safe_text(line[at:], known)])


def _safe_text(text: str, known: frozenset[int]) -> str:
    parts, at = [], 0
    for match in re.finditer(r"\[([^\]\n]*)\]\((#tm-[a-z]+(?:-[a-z_]+)?)\)", text):  # written by this module
        parts += [_plain_text(text[at : match.start()], known), f"[{_escaped(match[1])}]({match[2]})"]
        at = match.end()
    return "".join([*parts, _plain_text(text[at:], known)])


def _plain_text(text: str, known: frozenset[int]) -> str:
    text = _escaped(LINK.sub(r"\1", LINK.sub(r"\1", text)))  # twice: an image may be inside a link
    return MARKER.sub(lambda m: f"[{m[1]}](#tm-c{m[1]})" if int(m[1]) in known else f"\\[{m[1]}\\]", text)


def _escaped(text: str) -> str:
    return RAW_TEXT.sub(lambda match: RAW[match[0].lower()], text)


def _info(line: str) -> str:
    """A fence's language; empty if it is anything else."""
    rest = fence_of(line)[1]
    return rest if re.fullmatch(r"[A-Za-z0-9+-]{0,20}", rest) else ""
