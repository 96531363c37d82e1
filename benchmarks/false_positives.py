"""Findings of every rule on the configs and launch scripts shipped with the frameworks.

    python -m benchmarks.false_positives openrlhf:v0.8.11:PATH/TO/OpenRLHF trl:v1.9.0:… > docs/know/examples.md

Each argument is framework:tag:checkout (a clone or its git directory; nothing is checked out, nothing is executed).
Every file is checked twice: alone, and together with the version of the tag. The shipped examples are presumed
correct: a finding is a false alarm until the example itself is shown to be at fault.
Exit code 1 if an error-severity finding is not explained in benchmarks/explained.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Finding, Severity, Status
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse

SUFFIXES = (".sh", ".yaml", ".yml", ".json", ".py", ".slurm")
FOLDERS = ("examples", "scripts", "recipe", "recipes", "tests/special_e2e")
MAX_BYTES = 200_000
EXPLAINED = Path(__file__).with_name("explained.json")
PACKAGES = {"ms-swift": "ms-swift"}


HEAD = """# What the rules find in the frameworks' own examples

Every shell script, YAML, JSON and Python file below the example folders of public releases, checked as it is and once
more together with the version of its tag. The shipped examples are taken to be right: a finding is a false alarm
until it is shown that the example itself is at fault. Made by

```
python -m benchmarks.false_positives {corpora}
```

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One framework at one tag."""

    framework: str
    tag: str
    checkout: str

    def files(self) -> Iterator[tuple[str, bytes]]:
        listed = self._git("ls-tree", "-r", "-l", "-z", self.tag).decode("utf-8", "replace")
        for entry in filter(None, listed.split("\0")):
            meta, name = entry.split("\t", 1)
            size = meta.split()[3]
            if name.endswith(SUFFIXES) and name.startswith(FOLDERS) and size.isdigit() and int(size) <= MAX_BYTES:
                yield name, self._git("show", f"{self.tag}:{name}")

    def _git(self, *arguments: str) -> bytes:
        root = Path(self.checkout)
        where = ["--git-dir", str(root)] if (root / "HEAD").is_file() else ["-C", str(root)]
        return subprocess.run(["git", *where, *arguments], check=True, capture_output=True).stdout


@dataclass(slots=True)
class Tally:
    files: int = 0
    with_error: int = 0
    with_warning: int = 0
    fired: Counter[str] | None = None


def findings(name: str, content: bytes, version: Attachment | None, rules: RuleSet) -> tuple[Finding, ...]:
    attachments = [Attachment(name=name, content=content)] + ([version] if version else [])
    return check(parse("", attachments), rules).findings


def survey(corpora: Sequence[Corpus], rules: RuleSet) -> tuple[dict[str, Tally], list[tuple[str, str, Finding]]]:
    """Tallies by corpus, and every fired finding of severity warning or error with its file."""
    tallies: dict[str, Tally] = {}
    problems: list[tuple[str, str, Finding]] = []
    for corpus in corpora:
        label = f"{corpus.framework} {corpus.tag}"
        tally = tallies.setdefault(label, Tally(fired=Counter()))
        package = PACKAGES.get(corpus.framework, corpus.framework)
        pinned = Attachment(name="pip-list.txt", content=f"{package}=={corpus.tag.lstrip('v')}\n")
        for name, content in corpus.files():
            tally.files += 1
            fired: dict[str, Finding] = {}
            for version in (None, pinned):
                for finding in findings(name, content, version, rules):
                    if finding.status is Status.FIRED:
                        fired.setdefault(finding.rule_id, finding)
            assert tally.fired is not None
            tally.fired.update(fired.keys())
            tally.with_error += any(f.severity is Severity.ERROR for f in fired.values())
            tally.with_warning += any(f.severity is Severity.WARNING for f in fired.values())
            problems += [(label, name, f) for f in fired.values() if f.severity is not Severity.INFO]
    return tallies, problems


def markdown(tallies: dict[str, Tally], problems: Sequence[tuple[str, str, Finding]], rules: RuleSet) -> str:
    explained = explanations()
    lines = ["| corpus | files | files with an error | files with a warning |", "|---|---|---|---|"]
    for label, tally in tallies.items():
        lines.append(f"| {label} | {tally.files} | {tally.with_error} | {tally.with_warning} |")
    total = sum(tally.files for tally in tallies.values())
    errors = sum(tally.with_error for tally in tallies.values())
    warnings = sum(tally.with_warning for tally in tallies.values())
    lines.append(f"| all | {total} | {errors} | {warnings} ({warnings / max(total, 1):.2%}) |")
    counts: Counter[str] = Counter()
    for tally in tallies.values():
        counts.update(tally.fired or {})
    lines += [
        "",
        "## Rules that fired",
        "",
        f"{sum(counts[rule.id] > 0 for rule in rules.rules)} of {len(rules.rules)} rules; the others fired on no file.",
        "",
        "| rule | severity | files it fired on | rate | where |",
        "|---|---|---|---|---|",
    ]
    for rule in sorted((rule for rule in rules.rules if counts[rule.id]), key=lambda rule: (rule.family, rule.id)):
        where = ", ".join(
            f"{label}: {t.fired[rule.id]}" for label, t in tallies.items() if t.fired and t.fired[rule.id]
        )
        link = f"[{rule.id}](../../{rule.page.name})"
        rate = counts[rule.id] / max(total, 1)
        lines.append(f"| {link} | {rule.severity.value} | {counts[rule.id]} | {rate:.2%} | {where} |")
    lines += ["", "## Every error and warning", ""]
    lines += ["| corpus | file | rule | severity | explanation |", "|---|---|---|---|---|"]
    for label, name, finding in problems:
        reason = explained.get(f"{finding.rule_id} {name}") or explained.get(finding.rule_id) or "**unexplained**"
        lines.append(f"| {label} | {name} | {finding.rule_id} | {finding.severity.value} | {reason} |")
    return "\n".join(lines) + "\n"


def explanations() -> dict[str, str]:
    """Why a finding on a shipped example is right: by rule, or by rule and file."""
    entries = json.loads(EXPLAINED.read_text(encoding="utf-8")) if EXPLAINED.is_file() else {}
    return {str(key): str(value) for key, value in entries.items()}


def main(arguments: Sequence[str]) -> int:
    corpora = []
    for argument in arguments:
        framework, tag, checkout = argument.split(":", 2)
        corpora.append(Corpus(framework=framework, tag=tag, checkout=checkout))
    rules = load_rules()
    tallies, problems = survey(corpora, rules)
    sys.stdout.write(HEAD.format(corpora=" ".join(f"{c.framework}:{c.tag}:CHECKOUT" for c in corpora)))
    sys.stdout.write(markdown(tallies, problems, rules))
    explained = explanations()
    open_errors: dict[str, list[str]] = defaultdict(list)
    for _, name, finding in problems:
        known = f"{finding.rule_id} {name}" in explained or finding.rule_id in explained
        if finding.severity is Severity.ERROR and not known:
            open_errors[finding.rule_id].append(name)
    for rule_id in sorted(open_errors):
        print(f"unexplained error: {rule_id} on {len(open_errors[rule_id])} files", file=sys.stderr)
    return 1 if open_errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
