"""The text of a new case page."""

from __future__ import annotations

SKELETON = """---
id: {id}
title:
  en: What goes wrong, where, and why
  zh: 什么出了问题、在哪里、为什么
kind: fault
family: nan-loss
frameworks: [trl]
algorithms: [dpo]
affected: {{trl: "<0.12.0"}}
fixed: {{trl: "0.12.0"}}
signals: [loss_nan]
settings: [micro_batch]
symptoms:
  en:
    - how a user words it, sloppy included
  zh:
    - 用户会怎么描述
no_rule: why no rule can detect it, or list the rules instead
evidence: reported
reviewed: 2026-01-01
sources:
  - url: https://github.com/OWNER/REPO/issues/NUMBER
    says: reporter
    note: who said what
refutations:
  - claim:
      en: what people try
      zh: 人们会尝试什么
    why:
      en: why it does not help
      zh: 为什么无效
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


def skeleton(case_id: str) -> str:
    """The skeleton with its id."""
    return SKELETON.format(id=case_id)
