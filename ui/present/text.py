"""A report for a terminal: one block per finding, the offending text under its place. No colour unless asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import FindingView, ReceiptView, ReportView
from trainmedic.service.answer.views import grouped, merged_evidence
from trainmedic.ui.present.messages import messages

if TYPE_CHECKING:  # a check prints none of them, and does not wait for their classes
    from trainmedic.service.answer.schema import (
        DifferentialNode,
        DifferentialView,
        MessagesView,
        MessageView,
        StatementView,
    )

# A finding over many lines of a log is clear after a few of them.
MAX_PLACES = 5
COLOURS = {"error": "31", "warning": "33", "info": "36", "cannot_tell": "35"}


def report(
    view: ReportView, language: str = "en", *, ranks: str = "", colour: bool = False, patches: bool = False
) -> str:
    """One block for findings that say the same. ``patches``: one patch for all if there is one, else each its own.
    ``ranks``: the table of a run that hangs."""
    each = patches and not view.patch
    blocks = [finding(group, language, colour=colour, patches=each) for group in grouped(view.findings)]
    if patches and view.patch:
        blocks.append("\n".join((messages("one_patch", language), "", view.patch.rstrip())))
    blocks += [ranks] if ranks else []
    blocks += [f"{messages('failed', language)}: {failure}" for failure in view.failures]
    blocks += list(problems(view.receipt, language))
    blocks += ["\n".join(item.message for item in view.horizon)] if view.horizon else []
    blocks.append(summary(view, language))
    return "\n\n".join(blocks) + "\n"


def finding(group: Sequence[FindingView], language: str, *, colour: bool, patches: bool) -> str:
    """Findings that say the same of one or more files."""
    view, spans = group[0], merged_evidence(group)
    files = len({span.attachment for span in spans}) if len(group) > 1 else 1
    level = view.severity if view.status == "fired" else "cannot_tell"
    lines = [f"{paint(level, COLOURS[level], colour)} {view.rule_id}: {view.title}"]
    if view.status == "fired":  # otherwise the message only repeats what is missing
        lines.append(f"  {view.message}")
    lines += [f"  {line}" for span in spans[:MAX_PLACES] for line in pointed(span, language)]
    lines += [f"  {messages('in_files', language, count=files)}"] if files > 1 else []
    lines += [f"  {messages('missing', language)}: {item.ask}" for item in view.missing]
    if view.fix:
        lines.append(f"  {messages('fix', language)}: {view.fix}")
    if patches and view.patch:
        for patch in dict.fromkeys(item.patch for item in group if item.patch):
            lines += ["", *(f"  {line}" for line in patch.splitlines())]
        if view.clears:
            lines.append(f"  {messages('clears', language)}: {', '.join(view.clears)}")
        if view.appears:
            lines.append(f"  {messages('appears', language)}: {', '.join(view.appears)}")
    return "\n".join(lines)


def pointed(span: Span, language: str) -> Iterable[str]:
    """``file:line:column`` and the text at that place."""
    where = f"{span.attachment or messages('question', language)}:{span.line}:{span.column}"
    if span.default:
        yield f"{where}: {messages('default', language)}"
        return
    first, *rest = span.text.split("\n")
    yield f"{where}: {first.strip()}{' …' if rest else ''}"


def explanations(view: MessagesView, language: str) -> str:
    """One block per message: the quoted text with its place, what it says, the source, the advice."""
    blocks = [explanation(item, language) for item in view.messages]
    return "\n\n".join(blocks or [messages("message.none", language)]) + "\n"


def explanation(view: MessageView, language: str) -> str:
    lines = [*pointed(view.evidence, language), f"  {view.text.replace('`', '')}"]
    lines.append(f"  {view.place.url or f'{view.place.file}:{view.place.line}'}")
    if view.advice is not None:
        lines += [f"  {view.advice.meaning}"] if view.advice.meaning else []
        for name in ("change", "no_help"):
            if text := getattr(view.advice, name):
                lines.append(f"  {messages(f'message.{name}', language)}: {text}")
        if view.advice.cases:
            lines.append(f"  {messages('message.cases', language)}: {', '.join(view.advice.cases)}")
    if view.others:
        lines.append(f"  {messages('message.others', language)}: {', '.join(view.others)}")
    return "\n".join(lines)


def differential(view: DifferentialView, language: str) -> str:
    """The causes considered as an indented tree, with what speaks for (✓) and against (✗) each, and where."""
    lines = [line for node in view.nodes for line in branch(node, language)]
    lines.append(f"{view.other:>4.0%} {messages('other', language)}")
    if view.excluded:
        lines += ["", f"{messages('ruled_out', language)}:"]
        for item in view.excluded:
            lines += [f"  {item.title} ({item.id})", *statements(item.excluded_by, "✗", "    ")]
    return "\n".join(lines) + "\n"


def branch(node: DifferentialNode, language: str, depth: int = 0) -> Iterable[str]:
    """A node with everything below it."""
    indent = "     " * depth
    state = f" [{messages(f'state.{node.state}', language)}]" if node.state is not None else ""
    level = messages(f"level.{node.level}", language)
    yield f"{indent}{node.probability:>4.0%} {level} {node.title} ({node.id}){state}"
    inner = f"{indent}     "
    yield from statements(node.supports, "✓", inner)
    yield from statements((*node.contradicts, *node.excluded_by), "✗", inner)
    for missing in node.missing:
        yield f"{inner}? {missing.ask}"
    for child in node.nodes:
        yield from branch(child, language, depth + 1)


def statements(items: Iterable[StatementView], mark: str, indent: str) -> Iterable[str]:
    for item in items:
        places = ", ".join(f"{span.attachment or '-'}:{span.line}" for span in item.evidence)
        yield f"{indent}{mark} {item.text}" + (f" ({places})" if places else "")


def problems(receipt: ReceiptView, language: str) -> Iterable[str]:
    for problem in receipt.problems:
        span = problem.evidence
        where = f"{span.attachment or messages('question', language)}:{span.line}:{span.column}: " if span else ""
        yield f"{messages('problem', language)}: {where}{problem.message}"


def summary(view: ReportView, language: str) -> str:
    """The number of findings of each severity, on one line."""
    groups = [group[0] for group in grouped(view.findings)]
    fired = [item.severity for item in groups if item.status == "fired"]
    unsure = sum(item.status == "cannot_tell" for item in groups)
    if not fired and not unsure:
        return clean(view, language)
    counts = {"errors": fired.count("error"), "warnings": fired.count("warning"), "notes": fired.count("info")}
    parts = [messages(f"summary.{name}", language, count=count) for name, count in counts.items()]
    return messages("comma", language).join((*parts, messages("summary.unsure", language, count=unsure)))


def clean(view: ReportView, language: str) -> str:
    """No finding, and what was checked: silence about a file that was not understood would read as a clean bill."""
    run = view.run
    checked = [run.framework] if run.framework else []
    for name in ("settings", "versions"):
        if count := len(getattr(run, name)):
            checked.append(messages(f"checked.{name}", language, count=count))
    if checked:
        things = messages("semicolon", language).join(checked)
        return f"{messages('clean', language)} {messages('looked', language, things=things)}"
    return messages("clean" if view.signals else "nothing", language)


def paint(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text
