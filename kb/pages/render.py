"""Cases, mechanisms and rules as Markdown in one language, as documentation, search results and channels show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from trainmedic.kb.engine.mechanism import Mechanism, MechanismSet, Observation, Origin
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Reference, Text
from trainmedic.kb.pages.body import SECTIONS, read_body

_LABELS: Mapping[str, Text] = MappingProxyType(
    {
        "symptom": Text(en="Symptom", zh="现象"),
        "cause": Text(en="Cause", zh="原因"),
        "fix": Text(en="Fix", zh="修复"),
        "confirm": Text(en="How to confirm", zh="如何确认"),
        "refutations": Text(en="What does not help", zh="哪些办法没有用"),
        "ask": Text(en="What to tell us", zh="请补充的信息"),
        "sources": Text(en="Sources", zh="来源"),
        "versions": Text(en="Versions", zh="版本"),
        "affected": Text(en="affected", zh="受影响"),
        "fixed": Text(en="fixed in", zh="已修复于"),
        "artefact": Text(
            en="Nothing is wrong with the run: this is how the number is logged.",
            zh="训练本身没有问题，只是这个数值的记录方式如此。",
        ),
        "evidence": Text(en="Evidence", zh="证据"),
        "reviewed": Text(en="reviewed", zh="复核日期"),
        "second reader": Text(en=" by a second reader", zh="（由第二人复核）"),
        "detected": Text(en="Detected by", zh="可由规则检测"),
        "undetected": Text(en="No rule detects this", zh="没有规则能检测"),
        "related": Text(en="Related", zh="相关"),
        "colon": Text(en=": ", zh="："),
        "when": Text(en="Condition", zh="条件"),
        "cases": Text(en="Cases", zh="案例"),
        "fires": Text(en="Example that fires", zh="触发示例"),
        "module": Text(en="module", zh="模块"),
        "happens": Text(en="What happens", zh="发生了什么"),
        "origins": Text(en="What it comes from", zh="它从哪里来"),
        "explains": Text(en="What speaks for it", zh="支持它的观察"),
        "against": Text(en="What speaks against it", zh="不支持它的观察"),
        "excludes": Text(en="What rules it out", zh="能排除它的观察"),
        "origin of": Text(en="What is going on", zh="正在发生的是"),
        "change": Text(en="Change", zh="改法"),
        "often": Text(en="often", zh="常见"),
        "sometimes": Text(en="sometimes", zh="偶尔"),
        "rarely": Text(en="rarely", zh="少见"),
    }
)
_GRADES: Mapping[str, Text] = MappingProxyType(
    {
        "reproduced": Text(en="reproduced: run and seen", zh="已复现：实际运行并观察到"),
        "maintainer": Text(en="stated by a maintainer", zh="维护者说明"),
        "reporter": Text(en="stated by the reporter of the issue", zh="问题报告者说明"),
        "source-read": Text(en="read in the source", zh="从源码读出"),
        "reported": Text(en="reported, not confirmed by anybody", zh="仅有报告，尚无人证实"),
    }
)
_SOURCES: Mapping[str, Text] = MappingProxyType(
    {
        "maintainer": Text(en="maintainer", zh="维护者"),
        "reporter": Text(en="reporter", zh="报告者"),
        "source": Text(en="source code", zh="源码"),
        "reproduction": Text(en="reproduction", zh="复现"),
        "docs": Text(en="documentation", zh="文档"),
    }
)


def render_rule(rule: Rule, language: str = "en") -> str:
    """The rule's page, English for any language but ``zh``. Raises `PageError` if its body breaks the format."""
    language = "zh" if language == "zh" else "en"
    body = read_body(rule)
    parts = [f"# {rule.title.get(language)}", f"`{rule.id}` · {rule.severity.value} · {rule.status}"]
    for heading in SECTIONS[language]:
        text = body.sections.get(language, {}).get(heading, "")
        parts += [f"## {heading}", text] if text else []
    parts += [_heading("when", language), f"```\n{rule.when or _LABELS['module'].get(language)}\n```"]
    example = next((example for example in body.examples if example.kind == "Fires"), None)
    if example is not None:
        parts += [_heading("fires", language), example.sentence]
        for attachment in example.attachments:
            parts += [f"`{attachment.name}`", f"```\n{str(attachment.content).rstrip()}\n```"]
    parts += [_heading("cases", language), "\n".join(f"- {case}" for case in rule.cases)]
    sources = [f"- <{source.url}> ({source.says}) {source.note}".rstrip() for source in rule.sources]
    parts += [_heading("sources", language), "\n".join(sources)]
    return "\n\n".join(parts) + "\n"


def render_case(case: Case, language: str = "en") -> str:
    """The whole case, English for any language but ``zh``."""
    language = "zh" if language == "zh" else "en"
    parts = [f"# {case.title.get(language)}"]
    if case.kind == "artefact":
        parts.append(f"*{_LABELS['artefact'].get(language)}*")
    parts.extend(_versions(case, language))
    for name in ("symptom", "cause", "fix"):
        parts += [_heading(name, language), case.section(name, language)]
    if case.refutations:
        refutations = [f"- **{item.claim.get(language)}** {item.why.get(language)}" for item in case.refutations]
        parts += [_heading("refutations", language), "\n".join(refutations)]
    parts += [_heading("confirm", language), case.section("confirm", language)]
    if case.ask:
        questions = [f"- {item.ask.get(language)} ({item.why.get(language)})" for item in case.ask]
        parts += [_heading("ask", language), "\n".join(questions)]
    parts += [_heading("sources", language), "\n".join(_reference(item, language) for item in case.sources)]
    parts.append("  \n".join(_footer(case, language)))
    return "\n\n".join(parts) + "\n"


def render_cause(cause: Case, mechanisms: MechanismSet, language: str = "en") -> str:
    """The page of a cause of any level: a case's own, or that of its mechanism."""
    place = mechanisms.find(cause.id) if cause.level != "case" else None
    return render_case(cause, language) if place is None else render_mechanism(*place, language)


def render_mechanism(mechanism: Mechanism, origin: Origin | None = None, language: str = "en") -> str:
    """A mechanism's page; with ``origin``, its page, which begins with that origin."""
    language = "zh" if language == "zh" else "en"
    parts = [f"# {(mechanism if origin is None else origin).title.get(language)}"]
    if origin is not None:
        colon = _LABELS["colon"].get(language)
        parts.append(_of_origin(origin, language))
        parts.append(
            f"**{_LABELS['origin of'].get(language)}{colon}{mechanism.title.get(language)}** (`{mechanism.id}`)"
        )
    for heading, text in mechanism_sections(mechanism, language):
        parts += [f"## {heading}", text]
    parts += [_heading("sources", language), "\n".join(_reference(item, language) for item in mechanism.sources)]
    return "\n\n".join(parts) + "\n"


def mechanism_sections(mechanism: Mechanism, language: str) -> tuple[tuple[str, str], ...]:
    """Headings with their Markdown: what happens, origins, what speaks for and against it, how to confirm, cases."""
    sections = [("happens", mechanism.section("cause", language))]
    sections.append(("origins", "\n".join(f"- {_origin(origin, language)}" for origin in mechanism.origins)))
    for name in ("explains", "against", "excludes"):
        observations: tuple[Observation, ...] = getattr(mechanism, name)
        lines = [f"- {item.says.get(language)} (`{' '.join(item.text.split())}`)" for item in observations]
        sections.append((name, "\n".join(lines)))
    sections.append(("confirm", mechanism.section("confirm", language)))
    sections.append(("cases", "\n".join(f"- `{case_id}`" for case_id in mechanism.all_cases)))
    return tuple((_LABELS[label].get(language), text) for label, text in sections if text)


def _origin(origin: Origin, language: str) -> str:
    stop = "。" if language == "zh" else ". "
    return (
        f"**{origin.title.get(language)}** ({_LABELS[origin.common].get(language)}){stop}{_of_origin(origin, language)}"
    )


def _of_origin(origin: Origin, language: str) -> str:
    """Condition, change, cases and rules of an origin."""
    colon, stop = _LABELS["colon"].get(language), "。" if language == "zh" else ". "
    parts = []
    if origin.text:
        parts.append(f"{_LABELS['when'].get(language)}{colon}`{' '.join(origin.text.split())}`")
    parts.append(f"{_LABELS['change'].get(language)}{colon}{origin.fix.get(language).rstrip('.。')}")
    for label, ids in (("cases", origin.cases), ("detected", origin.rules)):
        if ids:
            parts.append(f"{_LABELS[label].get(language)}{colon}{_code(ids)}")
    return stop.join(parts) + stop.strip()


def _heading(label: str, language: str) -> str:
    return f"## {_LABELS[label].get(language)}"


def _versions(case: Case, language: str) -> list[str]:
    lines = []
    for name in dict.fromkeys((*case.affected, *case.fixed)):
        ranges = [
            f"{_LABELS[label].get(language)} `{versions[name]}`"
            for label, versions in (("affected", case.affected), ("fixed", case.fixed))
            if name in versions
        ]
        lines.append(f"- `{name}`{_LABELS['colon'].get(language)}{'; '.join(ranges)}")
    return [f"**{_LABELS['versions'].get(language)}**", "\n".join(lines)] if lines else []


def _reference(item: Reference, language: str) -> str:
    says = _SOURCES[item.says].get(language) if item.says in _SOURCES else item.says
    return f"- <{item.url}> ({says})" + (f": {item.note}" if item.note else "")


def _footer(case: Case, language: str) -> list[str]:
    def line(label: str, text: str) -> str:
        return f"{_LABELS[label].get(language)}{_LABELS['colon'].get(language)}{text}"

    grade = _GRADES[case.evidence].get(language) if case.evidence in _GRADES else case.evidence
    reader = _LABELS["second reader"].get(language) if case.reviewed_by == "second reader" else ""
    lines = [line("evidence", f"{grade}. {_LABELS['reviewed'].get(language)} {case.reviewed}{reader}.")]
    if case.rules:
        lines.append(line("detected", _code(case.rules)))
    elif case.no_rule:
        # The reason is kept in English only.
        lines.append(_LABELS["undetected"].get(language) if language == "zh" else line("undetected", case.no_rule))
    if case.related:
        lines.append(line("related", _code(case.related)))
    return lines


def _code(ids: Iterable[str]) -> str:
    return ", ".join(f"`{page_id}`" for page_id in ids)
