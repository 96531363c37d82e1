"""The answer on one page, for whoever pays for every word that it reads: the cause, its evidence, the patch, what does
not help, what is missing. What does not fit is left out from the end of each list, and never the first of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from trainmedic.kb.error_messages.tables import LOGGED
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import FindingView
from trainmedic.kb.serialization import plain
from trainmedic.service.answer.schema import Answer, CauseView, DefectView, DifferentialNode, Language, Verdict
from trainmedic.ui.present.messages import messages

MOST_BYTES = 4500
"""1,500 tokens of three bytes, which holds for English, Chinese and code."""
MOST_CAUSES, MOST_EVIDENCE, MOST_OTHERS = 3, 6, 5
_MOST_QUOTED, _MOST_SAID = 160, 600
Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCause:
    """A cause: its page or rule, how sure it is, what to change, and the lines that show it as ``file:line: text``."""

    id: str
    title: str
    cause: str
    fix: str
    confidence: str
    evidence: Lines = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All of an answer that one page holds; ``avoid`` is what people try that does not help, ``missing`` what would
    decide, ``findings`` and ``defects`` what else is wrong, ``read`` what was looked at, ``not_found`` what was looked
    for. ``shortened``: something did not fit."""

    verdict: Verdict
    language: Language
    answer_id: str = ""
    conversation_id: str = ""
    causes: tuple[PageCause, ...] = ()
    patch: str = ""
    avoid: Lines = ()
    messages: Lines = ()
    findings: Lines = ()
    defects: Lines = ()
    missing: Lines = ()
    notices: Lines = ()
    read: Lines = ()
    not_found: Lines = ()
    shortened: bool = False


def page_of(answer: Answer, read: Lines = (), not_found: Lines = (), notices: Lines = ()) -> Page:
    """The page of an answer; ``read`` are the inputs in the words of whoever collected them."""
    fired = [item for item in answer.findings if item.status == "fired"]
    causes = tuple(_cause(each, answer) for each in answer.causes[:MOST_CAUSES])
    main, covered = _finding_of(answer, fired), set(answer.causes[0].findings if answer.causes else ())
    if proof := _proof(answer, fired):
        main, causes = proof, (_as_cause(proof), *causes)[:MOST_CAUSES]
    elif not causes and main is not None:
        causes = (_as_cause(main),)
    covered |= {main.rule_id} if main is not None else set()
    others = [_short(item) for item in fired if item.rule_id not in covered]
    first = answer.causes[0] if answer.causes else None
    told = [
        each for each in answer.messages if each.kind not in LOGGED or (each.advice and answer.verdict != "no_fault")
    ]
    advice = [(each, each.advice) for each in told[:2]]
    page = Page(
        verdict=answer.verdict,
        language=answer.language,
        answer_id=answer.id,
        conversation_id=answer.conversation_id,
        causes=causes,
        patch=(main.patch or "").rstrip("\n") if main is not None else "",
        avoid=(
            *(f"{item.claim}: {item.why}" for item in (first.refutations if first is not None else ())),
            *(advised.no_help for _, advised in advice if advised is not None and advised.no_help),
        )[:MOST_OTHERS],
        messages=tuple(
            " ".join(filter(None, (_place(each.evidence) + ":", each.text, advised.change if advised else "")))
            for each, advised in advice
        ),
        findings=tuple(dict.fromkeys(others))[:MOST_OTHERS],
        defects=tuple(_defect(item) for item in answer.defects if item.certain)[:MOST_OTHERS],
        missing=tuple(dict.fromkeys(item.ask for item in answer.missing))[:MOST_OTHERS],
        notices=(*notices, *(item.message for item in answer.horizon)),
        read=read or tuple(item.name for item in answer.receipt.inputs if item.name is not None and item.read),
        not_found=not_found,
    )
    return fitted(page)


def fitted(page: Page) -> Page:
    """The page within `MOST_BYTES`: it gives up what is least needed first."""
    for give_up in _SACRIFICES:
        while _size(page) > MOST_BYTES and (less := give_up(page)) != page:
            page = replace(less, shortened=True)
    return page


def _size(page: Page) -> int:
    """Bytes of whichever is longer, its text or its JSON."""
    return max(len(written.encode()) for written in (text(page), as_json(page)))


def as_json(page: Page) -> str:
    return json.dumps(plain(page), ensure_ascii=False, separators=(",", ":"))  # with nothing that a check does not need


def text(page: Page) -> str:
    """The page for a terminal and for a model: plain lines under headings."""
    say = _words(page.language)

    def listed(name: str) -> list[str]:
        lines = getattr(page, name)
        return ["\n".join((say(f"page.{name}"), *(f"- {line}" for line in lines)))] if lines else []

    blocks = [say(f"page.verdict.{page.verdict}")]
    first, *others = _MESSAGES_FIRST if page.verdict == "need_input" else _IN_ORDER
    blocks += listed(first) if first else []
    blocks += [_cause_text(number, each, say) for number, each in enumerate(page.causes, 1)]
    blocks += [f"{say('page.patch')}\n```diff\n{page.patch}\n```"] if page.patch else []
    blocks += [block for name in others for block in listed(name)]
    blocks += [say("page.shortened")] if page.shortened else []
    return "\n\n".join(blocks) + "\n"


def _words(language: str) -> Callable[[str], str]:
    return lambda name: messages(name, language)


def _cause_text(number: int, cause: PageCause, say: Callable[[str], str]) -> str:
    sure = say(f"page.confidence.{cause.confidence}")
    lines = [f"{number}. {cause.title} ({sure}, {cause.id})"]
    lines += [f"   {cause.cause}"] if cause.cause else []
    lines += [f"   {say('page.evidence')} {line}" for line in cause.evidence]
    fix = cause.fix.replace("\n", "\n      ")
    lines += [f"   {say('page.fix')} {fix}"] if fix else []
    return "\n".join(lines)


def _cause(cause: CauseView, answer: Answer) -> PageCause:
    spans = cause.lines or tuple(
        span for item in answer.findings if item.rule_id in cause.findings for span in item.evidence
    )
    spans = spans or tuple(_supports(answer.differential.nodes, cause.case_id))
    return PageCause(
        id=cause.case_id,
        title=cause.title,
        cause=_cut(cause.cause),
        fix=_cut(cause.fix, _MOST_SAID, "\n"),
        confidence=cause.confidence,
        evidence=_places(spans),
    )


def _as_cause(finding: FindingView) -> PageCause:
    return PageCause(
        id=finding.rule_id,
        title=finding.title,
        cause=_cut(finding.message),
        fix=_cut(finding.fix, _MOST_SAID, "\n"),
        confidence="rule",
        evidence=_places(finding.evidence),
    )


def _finding_of(answer: Answer, fired: Sequence[FindingView]) -> FindingView | None:
    """The finding of the first cause; without causes the most severe one."""
    if answer.causes:
        wanted = answer.causes[0].findings
        return next((item for item in fired if item.rule_id in wanted), None)
    return min(fired, key=lambda item: _SEVERITIES.index(item.severity), default=None)


def _proof(answer: Answer, fired: Sequence[FindingView]) -> FindingView | None:
    """What a rule found wrong, where nothing proves the first cause: it goes before what is only likely."""
    first = answer.causes[0] if answer.causes else None
    wrong = [item for item in fired if item.concludes == "fault" and item.severity != "info"]
    if first is not None and any(item.rule_id in first.findings for item in wrong):
        return None
    wrong = [item for item in wrong if item.severity == "error" or not _of_code(item)]
    return min(wrong, key=lambda item: _SEVERITIES.index(item.severity), default=None)


def _of_code(item: FindingView) -> bool:
    """Whether a finding rests on a script alone: what may be wrong there, not what a run shows."""
    return all((span.attachment or "").endswith(".py") for span in item.evidence)


def _supports(nodes: Iterable[DifferentialNode], id: str) -> Iterable[Span]:
    for node in nodes:
        if node.id == id:
            yield from (span for statement in node.supports for span in statement.evidence)
        yield from _supports(node.nodes, id)


def _places(spans: Iterable[Span]) -> Lines:
    return tuple(dict.fromkeys(_line(span) for span in spans if not span.default))[:MOST_EVIDENCE]


def _line(span: Span) -> str:
    """The place and its text; of several lines the last, which in a traceback is the error."""
    *before, last = span.text.rstrip().split("\n")
    return f"{span.attachment or '-'}:{span.line + len(before)}: {_cut(last, _MOST_QUOTED)}"


def _place(span: Span) -> str:
    return f"{span.attachment or '-'}:{span.line}"


def _short(item: FindingView) -> str:
    where = next((f" ({_place(span)})" for span in item.evidence), "")
    return f"{item.severity} {item.rule_id}: {item.title}{where}"


def _defect(item: DefectView) -> str:
    return f"{item.package} {item.version}: {item.title}" + (f" ({item.workaround})" if item.workaround else "")


def _cut(text: str, most: int = _MOST_SAID, between: str = " ") -> str:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    joined = between.join(filter(None, lines))
    return joined if len(joined) <= most else joined[: most - 2].rstrip() + " …"


def _fewer(name: str, least: int) -> Callable[[Page], Page]:
    def shorter(page: Page) -> Page:
        lines = getattr(page, name)
        return replace(page, **{name: lines[:-1]}) if len(lines) > least else page

    return shorter


def _less_evidence(page: Page) -> Page:
    return replace(page, causes=tuple(replace(each, evidence=each.evidence[:2]) for each in page.causes))


def _briefer(page: Page) -> Page:
    brief = (replace(each, cause=_cut(each.cause, 250), fix=_cut(each.fix, 350, "\n")) for each in page.causes)
    return replace(page, causes=tuple(brief))


_IN_ORDER = ("", "avoid", "messages", "findings", "defects", "missing", "not_found", "read", "notices")
_MESSAGES_FIRST = ("messages", *(name for name in _IN_ORDER[1:] if name != "messages"))
_SEVERITIES = ("error", "warning", "info")
_FIRST_LEFT_OUT = (("defects", 1), ("findings", 2), ("read", 6), ("notices", 1), ("causes", 2))
_THEN = (("causes", 1), ("avoid", 1), ("messages", 1), ("missing", 1), ("read", 1), ("defects", 0), ("findings", 0))
_AT_LAST = (("notices", 0), ("not_found", 1), ("messages", 0), ("avoid", 0), ("read", 0))
_SACRIFICES: tuple[Callable[[Page], Page], ...] = (
    *(_fewer(name, least) for name, least in _FIRST_LEFT_OUT),
    *(_less_evidence, _briefer),
    *(_fewer(name, least) for name, least in _THEN),
    lambda page: replace(page, patch=""),  # half of a patch does harm
    *(_fewer(name, least) for name, least in _AT_LAST),
)
