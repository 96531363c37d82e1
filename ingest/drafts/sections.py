"""The section of a case page that a write-up's heading begins."""

from __future__ import annotations

from collections.abc import Mapping

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "fix": (
        *("解决", "修复", "方案", "建议", "实践", "规避"),
        *("solution", "fix", "workaround", "resol", "recommend", "best practice"),
    ),
    "cause": (
        *("原因", "根源", "分析", "原理", "排查", "机制"),
        *("cause", "why", "analysis", "mechanism", "diagnos", "investigat"),
    ),
    "symptom": (
        *("背景", "现象", "问题", "描述", "影响"),
        *("symptom", "background", "problem", "issue", "what happened", "overview"),
    ),
    "confirm": (
        *("确认", "验证", "复现", "结论", "总结", "启示"),
        *("confirm", "verif", "reproduc", "conclusion", "summary", "lesson"),
    ),
}
"""Words of headings by section, tried in this order."""


def section_of(heading: str) -> str | None:
    heading = heading.casefold()
    return next((name for name, words in SECTIONS.items() if any(word in heading for word in words)), None)
