"""The text of a new page. It loads, and lint complains only about the empty parts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

RULE = """---
id: {id}
title:
  en: "What is wrong, in a few words"
  zh: "用几个词说明问题"
severity: warning
status: preview
since: {version}
symptoms: [loss_nan]
applies: {{framework: [trl]}}
when: micro_batch == 1 and version("trl", "<0.12.0")
message:
  en: "What is wrong, with the measured value {{micro_batch}}"
  zh: "问题是什么，带上实际数值 {{micro_batch}}"
fix:
  - {{set: {{micro_batch: 2}}, safety: unsafe}}
cases: []
sources:
  - {{url: "https://github.com/OWNER/REPO/issues/NUMBER", says: maintainer, note: "who said what"}}
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

SKELETONS: Mapping[str, str] = {"case": CASE, "mechanism": MECHANISM, "rule": RULE}


def skeleton(kind: str, page_id: str, version: str, today: date, folder: str = "numerics") -> str:
    """``kind`` is one of `SKELETONS`, ``folder`` the name of the page's folder, which is a mechanism's family."""
    return SKELETONS[kind].format(id=page_id, version=version, today=today.isoformat(), folder=folder)
