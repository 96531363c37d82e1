"""A rule as a page for people, in one language; and the skeleton of a new page. Pure."""

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
    """The rule's page as Markdown. Raises `kb.errors.InvalidPage` where its body does not follow the format."""
    language = "zh" if language == "zh" else "en"
    words = WORDS[language]
    body = read_body(rule)
    lines = [f"# {rule.title.get(language)}", "", f"`{rule.id}` · {rule.severity.value} · {rule.status}"]
    for heading in SECTIONS[language]:
        text = body.sections.get(language, {}).get(heading, "")
        lines += ["", f"## {heading}", "", text] if text else []
    lines += ["", f"## {words['when']}", "", f"```\n{rule.when or words['module']}\n```"]
    example = next((each for each in body.examples if each.kind == "Fires"), None)
    if example is not None:
        lines += ["", f"## {words['fires']}", "", example.sentence]
        for attachment in example.attachments:
            lines += ["", f"`{attachment.name}`", "", f"```\n{str(attachment.content).rstrip()}\n```"]
    lines += ["", f"## {words['cases']}", "", *(f"- {case}" for case in rule.cases)]
    lines += ["", f"## {words['sources']}", ""]
    lines += [f"- <{each.url}> ({each.says}) {each.note}".rstrip() for each in rule.sources]
    return "\n".join(lines) + "\n"


SKELETON = """---
id: {id}
title:
  en: What is wrong, in a few words
  zh: 用几个词说明问题
severity: warning
status: preview
since: 0.1.0
symptoms: [loss_nan]
applies:
  framework: [trl]
when: micro_batch == 1
message:
  en: What was found, with the measured value {{micro_batch}}
  zh: 发现了什么，带上实际数值 {{micro_batch}}
fix:
  - set: {{micro_batch: 2}}
    safety: unsafe
cases: [some-case-id]
sources:
  - url: https://github.com/OWNER/REPO/issues/NUMBER
    says: maintainer
    note: who said what
---

## en

### What it finds

### Why it matters

### What to do

## zh

### 检查什么

### 为什么重要

### 怎么改

## Fires

### A sentence that says what the example shows

```bash train.sh
trl dpo --model_name_or_path m --dataset_name d ⟦--per_device_train_batch_size 1⟧
```

## Silent

### A near miss that must stay silent

```bash train.sh
trl dpo --model_name_or_path m --dataset_name d --per_device_train_batch_size 2
```

### Another one

```bash train.sh
swift rlhf --rlhf_type dpo --model m --per_device_train_batch_size 1
```

## Cannot tell

### What is missing to decide

```bash train.sh
trl dpo --model_name_or_path m --dataset_name d --per_device_train_batch_size $BATCH
```

missing: setting:micro_batch
"""


def skeleton(rule_id: str) -> str:
    """The text of a new rule page."""
    return SKELETON.format(id=rule_id)
