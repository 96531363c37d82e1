"""A case as Markdown in one language: what documentation, search results and chat show."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Reference

_LABELS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": MappingProxyType(
            {
                "symptom": "Symptom",
                "cause": "Cause",
                "fix": "Fix",
                "confirm": "How to confirm",
                "refutations": "What does not help",
                "ask": "What to tell us",
                "sources": "Sources",
                "versions": "Versions",
                "affected": "affected",
                "fixed": "fixed in",
                "artefact": "Nothing is wrong with the run: this is how the number is logged.",
                "evidence": "Evidence",
                "reviewed": "reviewed",
                "second reader": " by a second reader",
                "detected": "Detected by",
                "undetected": "No rule detects this",
                "related": "Related",
                "colon": ": ",
            }
        ),
        "zh": MappingProxyType(
            {
                "symptom": "现象",
                "cause": "原因",
                "fix": "修复",
                "confirm": "如何确认",
                "refutations": "哪些办法没有用",
                "ask": "请补充的信息",
                "sources": "来源",
                "versions": "版本",
                "affected": "受影响",
                "fixed": "已修复于",
                "artefact": "训练本身没有问题，只是这个数值的记录方式如此。",
                "evidence": "证据",
                "reviewed": "复核日期",
                "second reader": "（由第二人复核）",
                "detected": "可由规则检测",
                "undetected": "没有规则能检测",
                "related": "相关",
                "colon": "：",
            }
        ),
    }
)
_GRADES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "reproduced": ("reproduced: run and seen", "已复现：实际运行并观察到"),
        "maintainer": ("stated by a maintainer", "维护者说明"),
        "reporter": ("stated by the reporter of the issue", "问题报告者说明"),
        "source-read": ("read in the source", "从源码读出"),
        "reported": ("reported, not confirmed by anybody", "仅有报告，尚无人证实"),
    }
)
_SAYS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "maintainer": ("maintainer", "维护者"),
        "reporter": ("reporter", "报告者"),
        "source": ("source code", "源码"),
        "reproduction": ("reproduction", "复现"),
        "docs": ("documentation", "文档"),
    }
)


def render(case: Case, language: str = "en") -> str:
    """The whole case as Markdown, English for any language but ``zh``."""
    label = _LABELS["zh" if language == "zh" else "en"]
    parts = [f"# {case.title.get(language)}"]
    if case.kind == "artefact":
        parts.append(f"*{label['artefact']}*")
    parts.extend(_versions(case, label))
    for name in ("symptom", "cause", "fix"):
        parts.append(f"## {label[name]}\n\n{case.section(name, language)}")
    if case.refutations:
        lines = [f"- **{item.claim.get(language)}** {item.why.get(language)}" for item in case.refutations]
        parts.append(f"## {label['refutations']}\n\n" + "\n".join(lines))
    parts.append(f"## {label['confirm']}\n\n{case.section('confirm', language)}")
    if case.ask:
        lines = [f"- {item.ask.get(language)} ({item.why.get(language)})" for item in case.ask]
        parts.append(f"## {label['ask']}\n\n" + "\n".join(lines))
    parts.append(f"## {label['sources']}\n\n" + "\n".join(_reference(item, language) for item in case.sources))
    parts.append("\n".join(_footer(case, language, label)))
    return "\n\n".join(parts) + "\n"


def _versions(case: Case, label: Mapping[str, str]) -> list[str]:
    packages = [*case.affected, *(name for name in case.fixed if name not in case.affected)]
    lines = []
    for name in packages:
        facts = []
        if name in case.affected:
            facts.append(f"{label['affected']} `{case.affected[name]}`")
        if name in case.fixed:
            facts.append(f"{label['fixed']} `{case.fixed[name]}`")
        lines.append(f"- `{name}`{label['colon']}{'; '.join(facts)}")
    return [f"**{label['versions']}**\n\n" + "\n".join(lines)] if lines else []


def _reference(item: Reference, language: str) -> str:
    says = _SAYS.get(item.says, (item.says, item.says))[language == "zh"]
    return f"- <{item.url}> ({says})" + (f": {item.note}" if item.note else "")


def _footer(case: Case, language: str, label: Mapping[str, str]) -> list[str]:
    grade = _GRADES.get(case.evidence, (case.evidence, case.evidence))[language == "zh"]
    colon = label["colon"]
    reader = label["second reader"] if case.reviewed_by == "second reader" else ""
    lines = [f"{label['evidence']}{colon}{grade}. {label['reviewed']} {case.reviewed}{reader}."]
    if case.rules:
        lines.append(f"{label['detected']}{colon}" + ", ".join(f"`{rule}`" for rule in case.rules))
    elif case.no_rule:
        # The reason is kept in English only.
        lines.append(label["undetected"] + (f"{colon}{case.no_rule}" if language != "zh" else ""))
    if case.related:
        lines.append(f"{label['related']}{colon}" + ", ".join(f"`{other}`" for other in case.related))
    return [line + ("  " if line is not lines[-1] else "") for line in lines]
