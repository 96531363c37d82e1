"""A write-up's own configurations: one that is called fixed and still triggers a check, and one that does not hold what
the write-up blames. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmedic.ingest.drafts.draft import Draft, Mark
from trainmedic.ingest.drafts.likeness import denies
from trainmedic.ingest.drafts.statements import Statement
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Severity, Status, Text
from trainmedic.kb.parse.pipeline import parse

_ABSENCE = ("without", "missing", "lack", "not set", "unset", "omitted", "default", "没有", "缺少", "未", "漏", "默认")


def failing_fixes(draft: Draft, said: Sequence[Statement], rules: RuleSet) -> Iterator[Mark]:
    for statement in said:
        if statement.kind != "code" or statement.section != "fix":
            continue
        for finding in check(_evidence(draft, _after(statement.text)), rules).findings:
            if finding.status is Status.FIRED and finding.severity is Severity.ERROR:
                yield Mark(
                    kind="check",
                    claim=statement.passage,
                    page=finding.rule_id,
                    statement=finding.title,
                    why=finding.message,
                )


def blamed_but_absent(draft: Draft, said: Sequence[Statement]) -> Iterator[Mark]:
    """An option that a sentence gives as the cause although no configuration of the write-up sets it."""
    framework = next(iter(draft.values("framework")), "")
    shown = [_evidence(draft, s.text) for s in said if s.kind == "code" and s.section in ("symptom", "cause")]
    shown = [evidence for evidence in shown if evidence.run.options and not evidence.run.partial]
    if not shown or not framework:
        return
    written = {option.key.replace("-", "_") for evidence in shown for run in evidence.runs for option in run.options}
    for statement in said:
        folded = statement.text.casefold()
        if statement.section != "cause" or statement.kind == "code" or denies(folded):
            continue
        if any(word in folded for word in _ABSENCE):
            continue
        for word in dict.fromkeys(statement.text.replace("`", " ").replace("--", " ").split()):
            name = word.strip(".,;:()，。；：").replace("-", "_")
            if (
                "_" in name
                and name not in written
                and catalogue.exists(framework, name, None) is not False
                and catalogue.is_option(name)
            ):
                text = Text(
                    en=f"The configuration in the write-up does not set {name}.", zh=f"文中的配置并没有设置 {name}。"
                )
                yield Mark(
                    kind="check",
                    claim=statement.passage,
                    page=f"option:{framework}:{name}",
                    statement=text,
                    why=text,
                )


def _after(code: str) -> str:
    """The new side of a diff; any other code as it is."""
    lines = code.splitlines()
    if not any(line.startswith("+") for line in lines):
        return code
    kept = (line for line in lines if not (line.startswith("-") and not line.startswith("--")))
    return "\n".join(line[1:] if line.startswith(("+", " ")) else line for line in kept)


def _evidence(draft: Draft, code: str) -> Evidence:
    """What a block of code proves, with the versions that the write-up names."""
    pins = "\n".join("==".join(value.rsplit(" ", 1)) for value in draft.values("version"))
    framework = " ".join(draft.values("framework"))
    return parse(f"{framework}\n{pins}\n\n```\n{code}\n```")
