"""A report for a terminal: one block per finding, the offending text under its place. No colour unless asked."""

from __future__ import annotations

from collections.abc import Iterable

from trainmedic.kb.model.place import Span
from trainmedic.service.answer import FindingView, ReceiptView, ReportView

MAX_PLACES = 5
COLOURS = {"error": "31", "warning": "33", "info": "36", "cannot_tell": "35"}
WORDS = {
    "en": {
        "clean": "No findings.",
        "and": "; ",
        "looked": "Looked at: {things}.",
        "nothing": "No findings: no option, version or log line of a training run was recognised.",
        "settings": "options: {count}",
        "versions": "versions: {count}",
        "count": "{errors} errors, {warnings} warnings, {infos} notes, {unsure} could not be checked",
        "fix": "fix",
        "clears": "the patch clears",
        "appears": "it brings up",
        "missing": "needs",
        "default": "not written, a default",
        "question": "question",
        "problem": "not read",
        "failed": "rule failed",
    },
    "zh": {
        "clean": "没有发现问题。",
        "and": "；",
        "looked": "已检查：{things}。",
        "nothing": "没有发现问题：未识别出任何训练选项、版本或日志内容。",
        "settings": "选项 {count} 个",
        "versions": "版本 {count} 个",
        "count": "{errors} 个错误，{warnings} 个警告，{infos} 个提示，{unsure} 项无法检查",
        "fix": "修复",
        "clears": "补丁可消除",
        "appears": "补丁会新触发",
        "missing": "需要",
        "default": "未显式设置，取默认值",
        "question": "问题",
        "problem": "未能读取",
        "failed": "规则出错",
    },
}


def report(view: ReportView, language: str = "en", *, colour: bool = False, patches: bool = False) -> str:
    """The whole report, findings in their order, then what could not be read, then the counts."""
    words = WORDS["zh" if language == "zh" else "en"]
    blocks = [finding(item, words, colour=colour, patches=patches) for item in view.findings]
    blocks += [f"{words['failed']}: {failure}" for failure in view.failures]
    blocks += list(problems(view.receipt, words))
    blocks.append(summary(view, words))
    return "\n\n".join(blocks) + "\n"


def finding(view: FindingView, words: dict[str, str], *, colour: bool, patches: bool) -> str:
    """One finding: where, how bad, what, and what to do."""
    level = view.severity if view.status == "fired" else "cannot_tell"
    lines = [f"{paint(level, COLOURS[level], colour)} {view.rule_id}: {view.title}"]
    if view.status == "fired":  # else it says again what is missing
        lines.append(f"  {view.message}")
    lines += [f"  {line}" for span in view.evidence[:MAX_PLACES] for line in pointed(span, words)]
    lines += [f"  {words['missing']}: {item.ask}" for item in view.missing]
    if view.fix:
        lines.append(f"  {words['fix']}: {view.fix}")
    if patches and view.patch:
        lines += ["", *(f"  {line}" for line in view.patch.splitlines())]
        if view.clears:
            lines.append(f"  {words['clears']}: {', '.join(view.clears)}")
        if view.appears:
            lines.append(f"  {words['appears']}: {', '.join(view.appears)}")
    return "\n".join(lines)


def pointed(span: Span, words: dict[str, str]) -> Iterable[str]:
    """``file:line:column`` and the text that stands there."""
    where = f"{span.attachment or words['question']}:{span.line}:{span.column}"
    if span.default:
        yield f"{where}: {words['default']}"
        return
    first, *rest = span.text.split("\n")
    yield f"{where}: {first.strip()}{' …' if rest else ''}"


def problems(receipt: ReceiptView, words: dict[str, str]) -> Iterable[str]:
    """What could not be read as it stands."""
    for problem in receipt.problems:
        span = problem.evidence
        where = f"{span.attachment or words['question']}:{span.line}:{span.column}: " if span else ""
        yield f"{words['problem']}: {where}{problem.message}"


def summary(view: ReportView, words: dict[str, str]) -> str:
    """The counts on one line."""
    fired = [item.severity for item in view.findings if item.status == "fired"]
    unsure = sum(item.status == "cannot_tell" for item in view.findings)
    if not fired and not unsure:
        return clean(view, words)
    return words["count"].format(
        errors=fired.count("error"), warnings=fired.count("warning"), infos=fired.count("info"), unsure=unsure
    )


def clean(view: ReportView, words: dict[str, str]) -> str:
    """That nothing was found, and in what: silence about a file that was not understood is no clean bill."""
    run = view.run
    things = [run.framework] if run.framework else []
    things += [words[name].format(count=len(each)) for name in ("settings", "versions") if (each := getattr(run, name))]
    if things:
        return f"{words['clean']} {words['looked'].format(things=words['and'].join(things))}"
    return words["clean"] if view.signals else words["nothing"]


def paint(text: str, code: str, colour: bool) -> str:
    """``text`` in a terminal colour, or as it is."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text
