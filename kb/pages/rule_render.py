"""A rule as Markdown in one language: what documentation, the API and the chat show."""

from __future__ import annotations

from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.pages.body import SECTIONS, read_body

WORDS = {
    "en": {
        "when": "Condition",
        "cases": "Cases",
        "sources": "Sources",
        "fires": "Example that fires",
        "module": "module",
    },
    "zh": {"when": "条件", "cases": "案例", "sources": "来源", "fires": "触发示例", "module": "模块"},
}


def render(rule: Rule, language: str = "en") -> str:
    """The rule's page as Markdown. Raises `PageError` if its body does not follow the format."""
    language = "zh" if language == "zh" else "en"
    words = WORDS[language]
    body = read_body(rule)
    lines = [f"# {rule.title.get(language)}", "", f"`{rule.id}` · {rule.severity.value} · {rule.status}"]
    for heading in SECTIONS[language]:
        text = body.sections.get(language, {}).get(heading, "")
        lines += ["", f"## {heading}", "", text] if text else []
    lines += ["", f"## {words['when']}", "", f"```\n{rule.when or words['module']}\n```"]
    example = next((example for example in body.examples if example.kind == "Fires"), None)
    if example is not None:
        lines += ["", f"## {words['fires']}", "", example.sentence]
        for attachment in example.attachments:
            lines += ["", f"`{attachment.name}`", "", f"```\n{str(attachment.content).rstrip()}\n```"]
    lines += ["", f"## {words['cases']}", "", *(f"- {case}" for case in rule.cases)]
    lines += ["", f"## {words['sources']}", ""]
    lines += [f"- <{source.url}> ({source.says}) {source.note}".rstrip() for source in rule.sources]
    return "\n".join(lines) + "\n"
