"""Whether a question is about training language models at all, as a number. Pure.

Words alone mislead ("weight loss", a pod's "connection refused"), so what was recognised counts most, a symptom of
training next, a single word of ours least; and a word of another field takes away what mere words gave.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.prose_patterns import denied
from trainmedic.service.ranking.features import NON_FINITE

RECOGNISED = 3.0
"""A framework, an algorithm, an option, a logged row, a version of a training package."""
SYMPTOM = 1.5
"""A signal that only training shows, though it was only said."""
MOST_SAID = 3.0
"""All that words alone can add up to."""
BY_KIND = {
    "algorithm": 1.5,
    "framework": 1.5,
    "symptom": 1.5,
    "component": 0.8,
    "metric": 0.7,
    "setting": 0.7,
    "model": 0.7,
    "error": 0.5,
    "hardware": 0.5,
    "concept": 0.5,
    "data": 0.4,
}
"""What one concept of the question adds, by its kind in the glossary."""
EVERYWHERE = frozenset(
    {"connection_error", "file_not_found", "missing_module", "import_error", "value_error", "type_error"}
    | {"key_error", "assertion", "not_implemented", "hang", "throughput_drop", "unrecognized_argument"}
)
"""Signals that any program shows."""
OUTSIDE = re.compile(
    r"\b(?:weight|hair|hearing|blood|heat|packet|data) loss\b|\bkubectl\b|\bk8s\b|kubernetes|crashloop|\bnginx\b|"
    r"\bcss\b|\breact\b|\bhtml\b|\bmysql\b|\bpostgres|\bsql\b|spring boot|\bandroid\b|\bios\b|\bexcel\b|"
    r"\brecipe\b|\bcook|\brice\b|体重|减肥|掉发|脱发|做饭|红烧|菜谱|血压|股票|房价|旅游|前端|数据库|"
    r"\bgdpr\b|数据保护|变压器|\bkva\b|\bkeras\b|\bstable[- ]diffusion\b|\bsdxl\b|\bkohya|\bcomfyui\b|\byolo|"
    r"\bmap50\b|\bpods? (?:is |are )?(?:stuck|pending|evicted)\b|\bnodes are available\b|insufficient nvidia\.com/gpu|"
    r"\bwhich quant\b|\bmacbook\b|文生图|绘图",
    re.IGNORECASE,
)
"""Words of other fields. They decide only where nothing was recognised."""
ASKS_IF_NORMAL = re.compile(
    r"\bnormal\b|\bexpected\b|\bokay?\b|\bfine\b|should i worry|\bworried\b|look(?:s)? (?:right|good|healthy)|"
    r"is (?:this|that|it) (?:right|a problem|bad)|正常|没问题|有问题吗|要紧|对吗|对不对|预期|符合|健康|担心",
    re.IGNORECASE,
)
"""The question is whether something is normal."""
FAILED = re.compile(
    r"(?<![A-Za-z_.-])(?:fail(?:s|ed|ing|ure)?|crash(?:es|ed|ing)?|(?:does(?: not|n't)|not) work(?:ing)?"
    r"|broken|errors? out|raises? an? error|got an error)(?![A-Za-z_-])|报错|失败|崩溃|出错|跑不(?:起来|通|了)|用不了",
    re.IGNORECASE,
)
"""The question says that something failed."""
SHORT = 60
"""Letters of a question that leaves nearly everything open; a Chinese character counts as two."""
FEW = 3
"""Concepts of such a question at the most."""
NAMED = frozenset({"framework", "algorithm", "symptom", "metric", "model"})
"""Kinds of concepts that say what is run and what is seen, not what tells one cause from another."""


def is_vague(question: str, concepts: int) -> bool:
    """Whether a question says so little that asking back is the only honest answer."""
    return length(question) <= SHORT and concepts <= FEW


def is_bare(question: str, kinds: Collection[str], evidence: Evidence) -> bool:
    """Whether nothing but a framework, an algorithm and a symptom was named, in few words, and nothing was pasted.

    Such a question ("openrlhf kto loss is nan") fits every cause of that symptom there, known and unknown ones.
    """
    pasted = evidence.run.options or evidence.rows or evidence.tracebacks or evidence.versions
    named = "symptom" in kinds and NAMED.issuperset(kinds)
    return named and not pasted and is_vague(question, len(kinds))


def says_failed(question: str) -> bool:
    """Whether the question says that something failed, and not that nothing did."""
    return any(not denied(question, found.start()) for found in FAILED.finditer(question))


def length(question: str) -> int:
    """The letters of a question; a Chinese character counts as two."""
    return sum(2 if "\u3400" <= character <= "\u9fff" else 1 for character in question.strip())


def field_weight(evidence: Evidence, concepts: Iterable[str], glossary: Glossary, question: str) -> float:
    """How much speaks for our field: 0 for nothing, `RECOGNISED` or more for a sure thing."""
    run = evidence.run
    shown = {signal.kind for signal in evidence.signals} - EVERYWHERE
    sure_symptom = bool(shown & NON_FINITE) or any(kind.startswith(("grad_norm", "nccl", "kl_")) for kind in shown)
    if OUTSIDE.search(question) and not (
        run.framework or run.algorithm or run.options or evidence.rows or sure_symptom
    ):
        return 0.0
    facts = (run.framework, run.algorithm, run.options, evidence.rows)
    sure = RECOGNISED * sum(map(bool, facts))
    if sure:
        return sure
    said = sum(BY_KIND.get(glossary.concepts[concept].kind, 0.0) for concept in concepts)
    said += SYMPTOM * len(shown) + (0.5 if run.model_family else 0.0) + (0.5 if evidence.tracebacks else 0.0)
    return min(said, MOST_SAID)
