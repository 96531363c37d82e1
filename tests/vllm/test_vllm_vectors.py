"""Embeddings by the real vLLM server: an index is made and searched with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.store.knowledge import cases, glossary, rules
from tests.vllm import tiny
from tests.vllm.server import NAME, Server
from trainmedic.kb.errors import StoreError
from trainmedic.kb.model.report import Report
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.store import build as store
from trainmedic.kb.store.embedder import MAX_CHARACTERS, OpenAIEmbedder, make_embedder
from trainmedic.kb.store.index import open_index
from trainmedic.service.dialogue.query import build_query
from trainmedic.service.ranking.retrieve import retrieve


def test_vllm_embeds_the_knowledge_and_the_questions(vllm_embeddings: Server, tmp_path: Path) -> None:
    embedder = make_embedder(f"openai:{NAME}", base_url=f"{vllm_embeddings.url}/v1")
    assert isinstance(embedder, OpenAIEmbedder)
    assert embedder.identity.dimension == tiny.HIDDEN
    texts = ["loss is nan", "显存不足", "", "loss " * MAX_CHARACTERS]
    found = embedder.vectors(texts)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-4)
    assert float(embedder.vectors(["loss is nan"])[0] @ found[0]) == pytest.approx(1.0, abs=1e-3)
    index = store.ensure(cases(), rules(), glossary(), embedder, tmp_path, tmp_path / "none")
    again = make_embedder(f"openai:{NAME}", base_url=f"{vllm_embeddings.url}/v1")
    assert open_index(tmp_path / index.manifest.id, again).manifest == index.manifest
    evidence = parse("training hang in allreduce")
    query = build_query(evidence, Report(), evidence.question, glossary=glossary())
    (hit, *_) = retrieve(query, index, embedder, cases={case.id: case for case in cases().published})
    assert hit.case_id == "nccl-hang"
    assert hit.dense_rank is not None


def test_a_model_that_is_not_served_is_said_to_be_missing(vllm_embeddings: Server) -> None:
    with pytest.raises(StoreError, match="answers 404") as caught:
        make_embedder("openai:bge-m3", base_url=f"{vllm_embeddings.url}/v1")
    assert "may not serve this model" in (caught.value.hint or "")
