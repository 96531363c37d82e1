"""A small knowledge base and an embedder that needs no model, for tests of the store and of retrieval."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.glossary.terms import Concept, Glossary
from trainmedic.kb.model.case import Case, Refutation
from trainmedic.kb.model.report import Reference, Text
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store.embedder import CachedEmbeddings, Identity


@cache
def direction(word: str, dimension: int) -> npt.NDArray[np.float32]:
    """The word's own direction."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)


class HashEmbedder(CachedEmbeddings):
    """A bag of words: every word has its own direction, so texts with common words are near."""

    def __init__(self, name: str = "hash", dimension: int = 64) -> None:
        super().__init__()
        self.identity = Identity(name=name, dimension=dimension, digest=f"{name}-1")
        self.asked = 0

    def vectors(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked += len(texts)
        rows = np.zeros((len(texts), self.identity.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row += direction(word, len(row))
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float32)


def case(id: str, en: Sequence[str], zh: Sequence[str] = (), **changes: object) -> Case:
    values: dict[str, object] = {
        "id": id,
        "title": Text(en=en[0], zh=zh[0] if zh else en[0]),
        "kind": "fault",
        "family": "nan-loss",
        "frameworks": ("trl",),
        "evidence": "maintainer",
        "reviewed": "2026-11-21",
        "sections": {"en": {"cause": f"cause of {en[0]}"}, "zh": {}},
        "sources": (Reference(url="https://example.org/1", says="maintainer"),),
        "symptoms": MappingProxyType({"en": tuple(en), "zh": tuple(zh)}),
    }
    return Case(**(values | changes))  # type: ignore[arg-type]


def glossary() -> Glossary:
    concepts = (
        Concept(id="nan-loss", kind="symptom", en=("nan loss", "loss nan"), zh=("损失变成 nan",)),
        Concept(id="oom", kind="symptom", en=("out of memory",), zh=("显存不足", "爆显存")),
        Concept(id="hang", kind="symptom", en=("hang",), zh=("卡住",)),
    )
    return Glossary({concept.id: concept for concept in concepts})


def cases(version: str = "v1") -> CaseSet:
    wrong = Refutation(
        claim=Text(en="lower the learning rate", zh="降低学习率"),
        why=Text(en="the forward pass is nan", zh="前向已是 nan"),
    )
    return CaseSet(
        cases=(
            case(
                "kto-nan",
                ["loss nan with vanilla_loss"],
                ["kto 损失变成 nan"],
                refutations=(wrong,),
                algorithms=("kto",),
            ),
            case("zero3-oom", ["cuda out of memory with zero3"], ["训练时爆显存"], family="oom", frameworks=("verl",)),
            case("nccl-hang", ["training hang in allreduce"], ["训练卡住不动"], family="communication"),
            case("a-draft", ["secret draft about quantisation"], status="draft"),
        ),
        version=version,
    )


def rules() -> RuleSet:
    return RuleSet(rules=(), version="r1")
