"""The text of a new page. It loads, and lint complains only about the empty parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from trainmedic.ingest.drafts.draft import Draft, DraftField, article_lines
from trainmedic.kb.parse.pipeline import parse

RULE = """---
id: {id}
title:
  en: "What is wrong, in a few words"
  zh: "用几个词说明问题"
severity: warning
status: preview
since: {version}
symptoms: [{signals}]
applies: {{framework: [{frameworks}]}}
when: {when}
message:
  en: "What is wrong, with the measured value {{{setting}}}"
  zh: "问题是什么，带上实际数值 {{{setting}}}"
fix:
  - {{set: {{{setting}: {good}}}, safety: unsafe}}
cases: [{cases}]
sources:
  - {{url: "{url}", says: {says}, note: "who said what"}}
---

## en

### What it finds

### Why it matters

### What to do

## zh

### 检查什么

### 为什么重要

### 怎么改

{examples}"""

EXAMPLES = """## Fires

### A sentence that says what the example shows

```bash train.sh
trl dpo --model_name_or_path m --dataset_name d ⟦--per_device_train_batch_size 1⟧
```
```text pip.txt
⟦trl==0.11.4⟧
```

## Silent

### A near miss that must stay silent

```bash train.sh
trl dpo --model_name_or_path m --dataset_name d --per_device_train_batch_size 2
```
```text pip.txt
trl==0.11.4
```

### Another near miss

```bash train.sh
trl dpo --model_name_or_path m --dataset_name d --per_device_train_batch_size 1
```
```text pip.txt
trl==0.12.0
```

## Cannot tell

### The version decides and is not given

```bash train.sh
trl dpo --model_name_or_path m --dataset_name d --per_device_train_batch_size 1
```

missing: version:trl
"""

CASE = """---
id: {id}
title:
  en: "What goes wrong, where, and why"
  zh: "什么出了问题、在哪里、为什么"
kind: fault
family: nan-loss
frameworks: [trl]
algorithms: [dpo]
stages: [preference]
affected: {{trl: "<0.12.0"}}
fixed: {{trl: "0.12.0"}}
signals: [loss_nan]
settings: [micro_batch]
symptoms:
  en:
    - "how a user words it, typos and all"
    - "the error message as it is pasted"
    - "a popular wrong explanation"
    - "another way to say it"
  zh:
    - "用户会怎么描述"
    - "粘贴出来的报错"
    - "常见的错误解释"
    - "另一种说法"
no_rule: "Why no rule can detect it; or write rules: [...] instead."
evidence: reporter
reviewed: "{today}"
sources:
  - {{url: "https://github.com/OWNER/REPO/issues/NUMBER", says: reporter, note: "who said what"}}
refutations:
  - claim:
      en: "What people try."
      zh: "人们会尝试什么。"
    why:
      en: "Why it does not help."
      zh: "为什么无效。"
ask:
  - fact: "version:trl"
    ask:
      en: "Which trl version?"
      zh: "trl 是哪个版本？"
    why:
      en: "What the fact decides."
      zh: "这一事实能区分什么。"
related: []
status: draft
---

## en

### Symptom

### Cause

### Fix

### How to confirm

## zh

### 现象

### 原因

### 修复

### 如何确认
"""

MECHANISM = """---
id: {id}
title:
  en: "What is going on, whatever the framework"
  zh: "正在发生什么，与框架无关"
family: {folder}
predicts: [loss_nan]
symptoms:
  en:
    - "how a user words it"
    - "another way to say it"
    - "with the numbers that users quote"
    - "with the usual wrong explanation"
    - "in a few words"
  zh:
    - "用户会怎么描述"
    - "另一种说法"
    - "带上用户引用的数值"
    - "带上常见的错误解释"
    - "只有几个词"
explains:
  - when: "signal('grad_norm_spike')"
    says:
      en: "what can be observed if it is this"
      zh: "如果是它，能观察到什么"
    weight: strong
against:
  - when: "onset('loss_nan') <= 1"
    says:
      en: "what speaks against it"
      zh: "什么与它不符"
    weight: strong
origins:
  - id: first-origin
    title:
      en: "The setting, version, datum or machine it comes from"
      zh: "来自哪个设置、版本、数据或机器"
    common: often
    fix:
      en: "The smallest change."
      zh: "最小的改动。"
sources:
  - {{url: "https://github.com/OWNER/REPO/issues/NUMBER", says: maintainer, note: "who said what"}}
---

## en

### What happens

### How to confirm

## zh

### 发生了什么

### 如何确认

## Explained

### A sentence that says what is special about this example

```text train.log
{{'loss': 1.9, 'grad_norm': 1.0}}
{{'loss': 1.9, 'grad_norm': 1.0}}
{{'loss': 1.9, 'grad_norm': 1.0}}
{{'loss': 1.9, 'grad_norm': 1.0}}
{{'loss': 1.9, 'grad_norm': 1.0}}
{{'loss': 1.9, 'grad_norm': 1.0}}
{{'loss': 1.9, 'grad_norm': 1.0}}
{{'loss': 2.9, 'grad_norm': 90.0}}
```

## Excluded

### A near miss

```text train.log
{{'loss': nan, 'grad_norm': nan, 'step': 1}}
```
"""

EXAMPLE_RULE: Mapping[str, str] = {
    "signals": "loss_nan",
    "frameworks": "trl",
    "when": 'micro_batch == 1 and version("trl", "<0.12.0")',
    "setting": "micro_batch",
    "good": "2",
    "cases": "",
    "url": "https://github.com/OWNER/REPO/issues/NUMBER",
    "says": "maintainer",
    "examples": EXAMPLES,
}
"""What a rule page is filled with if there is no write-up."""
EXAMPLE_FILES: Mapping[str, str] = {
    "command": "bash train.sh",
    "yaml": "yaml config.yaml",
    "json": "json config.json",
    "toml": "toml config.toml",
    "python": "python train.py",
    "log": "text train.log",
    "metrics": "text train.log",
    "traceback": "text train.log",
    "versions": "text pip.txt",
}
"""Kind of a write-up's code block → how an example names it."""
NEAR_MISSES = ("The same run with another value", "The same run with another version or condition")
SKELETONS: Mapping[str, str] = {"case": CASE, "mechanism": MECHANISM, "rule": RULE}


def skeleton(kind: str, page_id: str, version: str, today: date, folder: str = "numerics") -> str:
    """``kind`` is one of `SKELETONS`, ``folder`` the name of the page's folder, which is a mechanism's family."""
    values = {**EXAMPLE_RULE, "id": page_id, "version": version, "today": today.isoformat(), "folder": folder}
    return SKELETONS[kind].format_map(values)


def rule_of_draft(draft: Draft, version: str) -> str:
    """A rule page whose condition and example are those of the write-up: its configuration, log and versions.

    The values that the condition is about are marked in the example. The near misses are copies to be changed.
    """
    blocks = [block for block in _code(draft) if block.info]
    packages = [text.rpartition(" ") for text in draft.values("version")]
    pins = [f"{package}=={number}" for package, _, number in packages[:1]]
    if pins and not any(pins[0] in block.text for block in blocks):
        blocks.append(_CodeBlock(pins[0], 0, EXAMPLE_FILES["versions"]))
    settings = _decisive(draft, blocks)
    name, _, value = settings[0].value.partition(" = ") if settings else ("micro_batch", "", "1")
    facts = [f"{key} == {_literal(text)}" for key, _, text in (field.value.partition(" = ") for field in settings)]
    facts += [f'version("{package}", "=={number}")' for package, _, number in packages[:1]]
    fires = "\n".join(block.example(settings) for block in blocks)
    copy = "\n".join(block.example(()) for block in blocks)
    near = "\n\n".join(f"### {heading}\n\n{copy}" for heading in NEAR_MISSES)
    return RULE.format_map(
        {
            **EXAMPLE_RULE,
            "id": draft.id.removeprefix("draft-"),
            "version": version,
            "signals": ", ".join(sorted(set(draft.values("signal")))),
            "frameworks": ", ".join(draft.values("framework")),
            "when": " and ".join(facts) or EXAMPLE_RULE["when"],
            "setting": name,
            "good": {"true": "false", "false": "true"}.get(value, EXAMPLE_RULE["good"]),
            "cases": ", ".join(draft.related[:1]),
            "url": draft.url or EXAMPLE_RULE["url"],
            "says": "reporter",
            "examples": f"## Fires\n\n### {draft.title}\n\n{fires}\n\n## Silent\n\n{near}\n",
        }
    )


@dataclass(frozen=True, slots=True)
class _CodeBlock:
    """``first_line`` is that of the code in the draft's lines, ``info`` the language and file name of an example."""

    text: str
    first_line: int
    info: str

    def example(self, settings: Iterable[DraftField]) -> str:
        lines = self.text.splitlines()
        for field in settings:
            for passage in field.passages:
                at = passage.first_line - self.first_line
                if 0 <= at < len(lines):
                    lines[at] = lines[at].replace(passage.text, f"⟦{passage.text}⟧", 1)
        text = "\n".join(lines).replace("```", "'''")
        return f"```{self.info}\n{text}\n```"


def _code(draft: Draft) -> Iterator[_CodeBlock]:
    line = 2
    for block in draft.blocks:
        if block.kind == "code":
            kind = next((region.kind for region in parse(block.text).regions), "")
            yield _CodeBlock(block.text, line + 1, EXAMPLE_FILES.get(kind, ""))
        line += len(tuple(article_lines("", (block,)))) - 1


def _decisive(draft: Draft, blocks: Iterable[_CodeBlock]) -> list[DraftField]:
    """The settings in the write-up's configuration that its cause or fix names, else the first of them."""
    lines = {block.first_line + at for block in blocks for at in range(len(block.text.splitlines()))}
    settings = [
        field
        for field in draft.fields
        if field.name == "setting" and " = " in field.value and any(p.first_line in lines for p in field.passages)
    ]
    prose = _option_form(" ".join((*draft.values("cause"), *draft.values("fix"))))
    blamed = [
        field
        for field in settings
        if any(_option_form(p.text.replace("=", " ")).split()[0].rstrip(":") in prose for p in field.passages)
    ]
    return (blamed or settings[:1])[:2]


def _option_form(text: str) -> str:
    """A text with its options as words: ``--max-len`` as ``max_len``."""
    return text.casefold().replace("--", "").replace("-", "_")


def _literal(text: str) -> str:
    number = text.replace(".", "", 1).replace("-", "", 2).replace("e", "", 1).isdigit()
    return text if number else text.capitalize() if text in ("true", "false") else f'"{text}"'
