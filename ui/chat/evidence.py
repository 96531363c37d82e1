"""An answer as the HTML beside the chat. Pure: the same answer gives the same text, all user text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.engine.values import show
from trainmedic.kb.frameworks.profiles import profiles, title
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import FindingView, RunView, SignalView
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answer.views import grouped, merged_evidence
from trainmedic.ui.chat.causes import LIKELY_OTHER, OPEN, branches
from trainmedic.ui.chat.excerpt import Excerpt, excerpts
from trainmedic.ui.chat.plots import RunPlots, overlaid, run_plots
from trainmedic.ui.chat.texts import HERE, LANGUAGES, Language, Words, path_of, words
from trainmedic.ui.chat.uploads import WaitingFile
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.verdict import shown_verdict

STEPS = {"high": 3, "medium": 2, "low": 1}
"""Bars filled for a confidence."""
SEVERITIES = ("error", "warning", "info")
"""Worst first."""
PACKAGES = {
    "flash-attn": "FlashAttention",
    "megatron": "Megatron-LM",
    "nccl": "NCCL",
    "ray": "Ray",
    "torch": "PyTorch",
}
"""Display names of packages that are not frameworks."""
MAX_VERSIONS = 6
# GRPO, DAPO and the like are written in capitals, longer names are words.
LONGEST_ACRONYM = 5
MAX_FILES = 3
"""Files that one finding shows excerpts of."""
EMPHASIS = regex(r"(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])")
CODE_OR_SETTING = regex(
    r"(`+)(?!`).+?(?<!`)\1(?!`)"
    r"|(?<![\w`.=/\[(\"'-])(?:--[a-z][\w.-]*\w|[a-z]\w*_\w+(?:\.\w+)*=(?:\{[^{}`\n]*\}|\"[^\"`\n]*\"|[\w./-]*\w))"
)
"""Code, or a flag or setting in text that no ticks set off."""
TICKED = regex(r"`([^`\n]+)`")
SETTLED = ("answered", "no_fault")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingExcerpts:
    """One finding with the lines of the user's text, and the patch, that no finding before it shows.

    ``places`` are the first in each file, ``defaults`` the settings that it rests on and that are not written, and
    ``files`` the number of files that have it. ``own``: the patch repairs the first cause.
    """

    finding: FindingView
    excerpts: tuple[Excerpt, ...]
    places: tuple[Span, ...]
    defaults: tuple[str, ...]
    files: int
    patch: str
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedRun:
    """The plots of one log; ``onsets`` maps a line of it to the id of what shows the line."""

    number: int
    run: RunPlots
    onsets: Mapping[int, str]
    excerpts: tuple[Excerpt, ...]


@cache
def environment() -> Environment:
    """The template environment: everything is escaped, a missing name is an error."""
    env = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters["size"] = size
    env.filters["shown"] = lambda value: shortened(show(value)) or "[]"
    env.filters["inline"] = inline
    env.filters["lines"] = lines
    env.filters["shortened"] = shortened
    env.filters["fact"] = fact_name
    env.filters["framework"] = framework_name
    return env


def render(template: str, language: Language, **values: object) -> str:
    page = environment().get_template(template)
    return page.render(t=words(language), language=language, path=path_of, **values).strip()


def spoken(answer: Answer, language: Language) -> Language:
    """The language of an answer and of everything beside it; the page's for one in neither of ours."""
    return answer.language if answer.language in LANGUAGES else language


def panel(answer: Answer, texts: Mapping[str | None, str], language: Language, rules: RuleSet | None = None) -> str:
    """The evidence above the sources: facts of the run, findings with their patches, metrics, causes, defects.

    ``texts`` are the masked input texts by name (None: the question); ``rules`` those whose titles a patch is told by.
    """
    language = spoken(answer, language)
    found, aside, unsure = shown_findings(answer, texts, rules)
    runs = plotted(answer, [*found, *aside], texts, language)
    drawn = {(item.run.attachment, line) for item in runs for line in item.run.onset_lines}
    return render(
        "panel.html",
        language,
        a=answer,
        verdict=shown_verdict(answer),
        overlay=overlaid(answer.comparison.series, answer.series, words(language)) if answer.comparison else None,
        facts=facts(answer.run),
        findings=found,
        aside=aside,
        unsure=unsure,
        titles=titles(answer, rules, language) if rules is not None else {},
        effective=answer.effective if answer.effective and (answer.effective.rows or answer.effective.lost) else None,
        lost=[(each, messages(f"effective.{each.kind}", language)) for each in answer.effective.lost]
        if answer.effective is not None
        else [],
        signals=[
            each for each in signals(answer.signals) if (each.evidence.attachment, each.evidence.line) not in drawn
        ],
        runs=runs,
        causes=Markup(causes(answer, language)),
        pasted=any(item.name is not None for item in answer.receipt.inputs)
        or any(not signal.stated for signal in answer.signals),
    )


def titles(answer: Answer, rules: RuleSet, language: Language) -> dict[str, str]:
    """The titles of the rules that the patches clear or bring up, by their ids."""
    ids = {name for finding in answer.findings for name in (*finding.clears, *finding.appears)}
    return {name: rule.title.get(language) for name in ids if (rule := rules.get(name)) is not None}


def causes(answer: Answer, language: Language) -> str:
    """The considered causes as nested folds. A place links to the finding that shows the pasted line."""
    tree = branches(answer, language)
    if not tree:
        return ""
    found = {
        (span.attachment, span.line): f"tm-rule-{finding.rule_id}"
        for finding in reversed(answer.findings)
        for span in finding.evidence
        if not span.default and finding.status == "fired"
    }
    excluded, other = answer.differential.excluded, answer.differential.other
    spans = [span for branch in tree for span in branch.spans]
    spans += [span for item in excluded for reason in item.excluded_by for span in reason.evidence]
    return render(
        "causes.html",
        language,
        branches=tree,
        settled=answer.verdict in SETTLED,
        other=other if answer.verdict in OPEN and other >= LIKELY_OTHER else None,
        excluded=excluded if answer.verdict in OPEN else (),
        anchors={span: found.get((span.attachment, span.line), "") for span in spans},
        steps=STEPS,
    )


def steps(views: Sequence[StepView], language: Language) -> str:
    return render("steps.html", language, steps=views) if views else ""


def chips(inputs: Sequence[WaitingFile], language: Language) -> str:
    """A chip for each waiting file: what it was recognised as, with a button to remove it."""
    return render("chips.html", language, inputs=inputs) if inputs else ""


def sorted_findings(
    answer: Answer, rules: RuleSet | None = None
) -> tuple[list[FindingView], list[FindingView], list[FindingView]]:
    """Findings about the question, other fired ones, and undecided ones.

    A finding is about the question if a cause rests on it, or if its rule is about a symptom that was told or logged.
    If there is none and no cause was found, all errors and warnings count as such.
    """
    fired = [finding for finding in answer.findings if finding.status == "fired"]
    unsure = [finding for finding in answer.findings if finding.status != "fired"]
    cause_rules = {rule for cause in answer.causes for rule in cause.findings}
    seen = {signal.kind for signal in answer.signals}
    about = {rule.id for rule in rules.rules if not seen.isdisjoint(rule.symptoms)} if rules is not None else set()
    related = [finding for finding in fired if finding.rule_id in cause_rules | about]
    if not related and answer.verdict not in SETTLED:
        related = [finding for finding in fired if finding.severity != "info"]
    first = answer.causes[0].findings if answer.causes else []
    # Stable: findings of the first cause come first, the others by their severity.
    related.sort(key=lambda finding: (finding.rule_id not in first, SEVERITIES.index(finding.severity)))
    aside = [finding for finding in fired if finding not in related]
    aside.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return related, aside, unsure


def shown_findings(
    answer: Answer, texts: Mapping[str | None, str], rules: RuleSet | None
) -> tuple[list[FindingExcerpts], list[FindingExcerpts], list[FindingView]]:
    """The findings about the question and the others, those of the same words as one, and the undecided ones."""
    related, aside, unsure = sorted_findings(answer, rules)
    patched = patches(answer, (*related, *aside))
    marked: set[tuple[str | None, int]] = set()
    found = [_with_excerpts(group, answer, texts, patched, marked) for group in grouped(related)]
    return found, [_with_excerpts(group, answer, texts, patched, marked) for group in grouped(aside)], unsure


def _with_excerpts(
    findings: Sequence[FindingView],
    answer: Answer,
    texts: Mapping[str | None, str],
    patched: tuple[Sequence[FindingView], Sequence[FindingView]],
    marked: set[tuple[str | None, int]],
) -> FindingExcerpts:
    """Findings that say the same of several files, with excerpts of the first of them without ``marked`` lines."""
    finding, evidence = findings[0], [span for span in merged_evidence(findings) if not span.default]
    names = list(dict.fromkeys(span.attachment for span in evidence))
    shown = [span for span in evidence if span.attachment in names[:MAX_FILES]]
    fresh = [span for span in shown if (span.attachment, span.line) not in marked]
    marked.update((span.attachment, span.line) for span in shown)
    said = f"{finding.message} {finding.fix}"
    return FindingExcerpts(
        finding=finding,
        excerpts=excerpts(fresh, texts),
        places=tuple({span.attachment: span for span in reversed(shown)}[name] for name in names[:MAX_FILES]),
        defaults=tuple(name for name, each in answer.run.settings.items() if each.default and name in said)
        if len(evidence) < len(merged_evidence(findings))
        else (),
        files=len(names) if len(findings) > 1 else 1,
        patch=(finding.patch or "") if any(finding in each for each in patched) else "",
        own=finding in patched[0],
    )


def patches(answer: Answer, findings: Iterable[FindingView]) -> tuple[list[FindingView], list[FindingView]]:
    """The findings whose patch repairs the first cause (anything, where none is named), and the others with a patch.

    Each diff comes once. A patch that clears nothing repairs nothing.
    """
    first = answer.causes[0].findings if answer.causes and answer.verdict in SETTLED else None
    by_patch: dict[str, FindingView] = {}
    for finding in findings:
        if finding.patch:
            by_patch.setdefault(finding.patch, finding)
    unique = by_patch.values()
    own = [each for each in unique if each.clears and (first is None or each.rule_id in first)]
    return own, [each for each in unique if each not in own]


def facts(run: RunView) -> list[str]:
    """The run in a few words: framework with its version, algorithm, model, versions."""
    framework, versions = run.framework, run.versions
    facts = []
    if framework:
        release = versions.get(framework, "")
        facts.append(f"{framework_name(framework)} {release if release[:1].isdigit() else ''}".strip())
    if algorithm := run.algorithm:
        facts.append(algorithm.upper() if len(algorithm) <= LONGEST_ACRONYM else algorithm)
    facts += [run.model.rstrip("/").rpartition("/")[2]] if run.model else []
    others = sorted(name for name in versions if name in profiles() and name != framework)
    shown = [*(["torch"] if "torch" in versions else []), *others][:MAX_VERSIONS]
    return facts + [f"{name} {versions[name]}" for name in shown]


def signals(views: Iterable[SignalView]) -> list[SignalView]:
    """Each kind of signal once: the first one in a log, else the one in the question."""
    by_kind: dict[str, SignalView] = {}
    for signal in sorted(views, key=lambda signal: signal.stated):
        by_kind.setdefault(signal.kind, signal)
    return list(by_kind.values())


def plotted(
    answer: Answer, findings: Sequence[FindingExcerpts], texts: Mapping[str | None, str], language: Language
) -> list[PlottedRun]:
    """The metrics of each log. An onset leads to the finding that shows its line, else to an excerpt below."""
    anchors: dict[tuple[str | None, int], str] = {}
    for item in findings:
        for excerpt in item.excerpts:
            for row in excerpt.rows:
                if not row.gap:
                    anchors.setdefault((excerpt.name, row.number), f"tm-rule-{item.finding.rule_id}")
    runs = []
    for number, run in enumerate(run_plots(answer.series, words(language)), start=1):
        onsets = {line: anchors[run.attachment, line] for line in run.onset_lines if (run.attachment, line) in anchors}
        lines = texts.get(run.attachment, "").split("\n")
        elsewhere = [line for line in run.onset_lines if line not in onsets and line <= len(lines)]
        spans = [whole_line(run.attachment, line, lines[line - 1]) for line in elsewhere]
        onsets |= dict.fromkeys(elsewhere, f"tm-onset-1-{number}")
        runs.append(PlottedRun(number=number, run=run, onsets=onsets, excerpts=excerpts(spans, texts)))
    return runs


def whole_line(attachment: str | None, line: int, text: str, column: int = 1) -> Span:
    """``text`` as a part of one line."""
    end = column + len(text)
    return Span(attachment=attachment, line=line, column=column, end_line=line, end_column=end, text=text)


def first_sentences(text: str, limit: int = 220) -> str:
    """The beginning of a text, up to the end of a sentence if one is near."""
    # A citation is plain text; backticks are kept, for the template turns them into code.
    text = EMPHASIS.sub(r"\1", " ".join(text.split()))
    if len(text) <= limit:
        return text
    ends = [text.rfind(mark, 0, limit) + len(mark.rstrip()) for mark in (". ", "。", "；", "; ")]
    end = max(ends)
    return text[:end] if end > limit // 3 else text[: limit - 1] + "…"


def ticked(line: str) -> str:
    """A line with ticks around the flags and settings that it names without."""
    return CODE_OR_SETTING.sub(lambda match: match[0] if match[1] else f"`{match[0]}`", line)


def inline(text: str) -> Markup:
    """``text`` with the parts between single ticks as code, all of it escaped."""
    parts = TICKED.split(ticked(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in enumerate(parts)
    )


def lines(count: int, t: Words) -> str:
    return str(t["read_line"] if count == 1 else t["read_lines"].format(count=f"{count:,}"))


def shortened(text: str, most: int = 60) -> str:
    """A pasted text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def size(count: int) -> str:
    return f"{count} B" if count < 1024 else f"{count / 1024:.0f} KiB" if count < 2**20 else f"{count / 2**20:.1f} MiB"


def framework_name(framework: str) -> str:
    return PACKAGES.get(framework) or title(framework)


def fact_name(fact: str) -> str:
    """The name that a missing fact is answered under: ``micro_batch`` of ``setting:micro_batch``."""
    return fact.rpartition(":")[2]
