"""Embeddings from an OpenAI-compatible endpoint, on loopback with real sockets: whatever it does, it is told apart."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.store.endpoint import Answer, Endpoint, failing, words
from tests.store.knowledge import cases, glossary, rules
from trainmedic.kb.errors import InvalidSettings, StoreError
from trainmedic.kb.model.report import Report
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.store import build as store
from trainmedic.kb.store import embedder as module
from trainmedic.kb.store.embedder import PROBES, REQUEST_TEXTS, REST_S, Embedder, OpenAIEmbedder, make_embedder
from trainmedic.kb.store.index import Index, open_index
from trainmedic.service.dialogue.query import build_query
from trainmedic.service.ranking.retrieve import retrieve

KEY = "the-key-of-the-endpoint"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        yield server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)


def made(endpoint: Endpoint, clock: Callable[[], float] | None = None) -> OpenAIEmbedder:
    return OpenAIEmbedder("bge-m3", endpoint.url, KEY, clock or time.monotonic)


def test_a_question_and_a_document_have_the_prefixes_that_their_model_wants(endpoint: Endpoint) -> None:
    plain = made(endpoint)
    prefixes = {"query_prefix": "query: ", "document_prefix": "passage: "}
    embedder = make_embedder("openai:bge-m3", base_url=endpoint.url, api_key=KEY, **prefixes)
    endpoint.requests.clear()
    embedder.vectors(["KTO loss is nan", ""])
    embedder.embed_query("why is it nan")
    assert endpoint.texts == [["passage: KTO loss is nan", "passage: "], ["query: why is it nan"]]
    assert embedder.identity.digest != plain.identity.digest


# --- vectors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("only_floats", [False, True], ids=["base64", "float"])
def test_vectors_are_normalised_however_they_are_encoded(only_floats: bool) -> None:
    with Endpoint(only_floats=only_floats) as endpoint:
        embedder = make_embedder("openai:bge-m3", base_url=endpoint.url, api_key=KEY)
        assert isinstance(embedder, Embedder)
        assert (embedder.identity.name, embedder.identity.dimension) == ("openai:bge-m3", 32)
        found = embedder.vectors(["loss is nan", "out of memory"])
        assert found == pytest.approx(np.stack([words("loss is nan", 32), words("out of memory", 32)]), abs=1e-6)
        assert embedder.embed_query("loss is nan") == pytest.approx(found[0].tolist(), abs=1e-6)
        assert {body["model"] for _, body in endpoint.requests} == {"bge-m3"}


def test_the_key_is_sent(endpoint: Endpoint) -> None:
    made(endpoint).vectors(["loss"])
    assert [headers["authorization"] for headers, _ in endpoint.requests] == [f"Bearer {KEY}"] * 2


def test_many_texts_are_asked_in_batches_and_come_back_in_order(endpoint: Endpoint) -> None:
    embedder = made(endpoint)
    endpoint.backwards = True
    texts = [f"text number {n}" for n in range(2 * REQUEST_TEXTS + 3)]
    found = embedder.vectors(texts)
    assert [len(batch) for batch in endpoint.texts[1:]] == [REQUEST_TEXTS, REQUEST_TEXTS, 3]
    assert found == pytest.approx(np.stack([words(text, 32) for text in texts]), abs=1e-6)


def test_no_text_asks_nothing(endpoint: Endpoint) -> None:
    assert made(endpoint).vectors([]).shape == (0, 32)
    assert len(endpoint.requests) == 1


def test_an_empty_text_is_sent_as_a_blank_since_servers_refuse_it(endpoint: Endpoint) -> None:
    made(endpoint).vectors(["", "loss"])
    assert endpoint.texts[-1] == [" ", "loss"]


def test_a_text_too_long_for_the_model_is_cut_and_the_others_are_not(endpoint: Endpoint) -> None:
    embedder = made(endpoint)
    endpoint.longest = 300
    found = embedder.vectors(["nan " * 250, "the loss is nan"])
    assert [max(map(len, batch)) for batch in endpoint.texts[1:]] == [1000, 500, 250]
    assert {batch[1] for batch in endpoint.texts[1:]} == {"the loss is nan"}
    assert found[1] == pytest.approx(words("the loss is nan", 32), abs=1e-6)


def test_an_endpoint_that_finds_everything_too_long_is_given_up(endpoint: Endpoint) -> None:
    embedder = made(endpoint)
    endpoint.longest = 1
    with pytest.raises(StoreError, match="answers 400"):
        embedder.vectors(["nan " * 250])
    assert len(endpoint.requests) == 6


# --- identity -------------------------------------------------------------------------------------------------------


def test_the_same_model_has_the_same_identity_in_spite_of_rounding(endpoint: Endpoint) -> None:
    first = made(endpoint).identity
    rough = [{"index": n, "embedding": (words(text, 32) + 1e-3).tolist()} for n, text in enumerate(PROBES)]
    endpoint.answers = [(200, json.dumps({"data": rough}).encode())]
    assert made(endpoint).identity == first


def test_another_model_under_the_same_name_has_another_identity(endpoint: Endpoint) -> None:
    first = made(endpoint).identity
    other = [{"index": n, "embedding": row} for n, row in enumerate(np.eye(32)[:3].tolist())]
    endpoint.answers = [(200, json.dumps({"data": other}).encode())]
    second = made(endpoint).identity
    assert (second.name, second.dimension) == (first.name, first.dimension)
    assert second != first


def test_vectors_of_another_length_than_before_are_refused(endpoint: Endpoint) -> None:
    embedder = made(endpoint)
    endpoint.dimension = 16
    with pytest.raises(StoreError, match="16 dimensions, 32 before") as caught:
        embedder.vectors(["loss"])
    assert "another model" in (caught.value.hint or "")


# --- failures -------------------------------------------------------------------------------------------------------


def test_an_endpoint_needs_an_address() -> None:
    with pytest.raises(InvalidSettings, match="embedder_base_url"):
        make_embedder("openai:bge-m3")


def test_a_dead_endpoint_is_an_error_of_the_store() -> None:
    with pytest.raises(StoreError, match="does not answer") as caught:
        OpenAIEmbedder("m", "http://127.0.0.1:9/v1", KEY)
    assert "embedder_base_url" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("status", "hint"),
    [(400, "embeddings"), (401, "embedder_api_key"), (403, "embedder_api_key"), (404, "/v1"), (418, "log")],
)
def test_a_refusal_says_what_to_look_at_and_repeats_no_secret(endpoint: Endpoint, status: int, hint: str) -> None:
    embedder = made(endpoint)
    endpoint.answers = [failing(status, f"no: {KEY} said loss of acme")]
    with pytest.raises(StoreError, match=f"answers {status}") as caught:
        embedder.vectors(["loss of acme"])
    assert hint in (caught.value.hint or "")
    assert KEY not in repr((caught.value, caught.value.hint, caught.value.__cause__))
    assert caught.value.__suppress_context__
    assert len(endpoint.requests) == 2  # a refusal is not asked again


def test_a_hiccup_is_tried_again_once(endpoint: Endpoint) -> None:
    embedder = made(endpoint)
    endpoint.answers = [failing(503, "loading")]
    assert embedder.vectors(["loss"])[0] == pytest.approx(words("loss", 32), abs=1e-6)
    endpoint.answers = [failing(503, "loading")] * 2
    with pytest.raises(StoreError, match="answers 503"):
        embedder.vectors(["loss"])
    assert len(endpoint.requests) == 1 + 2 + 2


GARBAGE = {
    "no JSON": b"<html>hello</html>",
    "no object": b"[]",
    "no data": b'{"object": "list"}',
    "nothing in it": b'{"data": []}',
    "too few": b'{"data": [{"index": 0, "embedding": [1.0, 0.0]}]}',
    "ragged": b'{"data": [{"index": 0, "embedding": [1.0, 0.0]}, {"index": 1, "embedding": [1.0]}]}',
    "empty rows": b'{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}',
    "no numbers": b'{"data": [{"index": 0, "embedding": ["a"]}, {"index": 1, "embedding": ["b"]}]}',
    "not finite": b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1.0]}]}',
    "no index": b'{"data": [{"embedding": [1.0]}, {"embedding": [1.0]}]}',
}


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_embeddings_response_is_said_to_be_none(endpoint: Endpoint, raw: bytes) -> None:
    embedder = made(endpoint)
    endpoint.answers = [(200, raw)]
    with pytest.raises(StoreError, match=r"no embeddings|dimensions"):
        embedder.vectors(["loss", "nan"])


# --- questions ------------------------------------------------------------------------------------------------------


def test_a_question_is_embedded_once_for_its_share_and_its_vector(endpoint: Endpoint) -> None:
    embedder = made(endpoint)
    assert embedder.known_share("loss  is nan") == 1.0
    embedder.embed_query("loss is nan")
    assert endpoint.texts[1:] == [["loss is nan"]]


def trouble_of(embedder: OpenAIEmbedder) -> str | None:
    """What is wrong, asked anew."""
    return embedder.trouble


def test_a_question_goes_without_an_endpoint_that_fails_which_is_left_alone_for_a_while(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    embedder = made(endpoint, lambda: now)
    assert trouble_of(embedder) is None
    endpoint.answers = [failing(500, "out of memory")] * 2
    with caplog.at_level(logging.WARNING):
        assert embedder.known_share("the loss of acme") == 0.0
    assert trouble_of(embedder) == "the embeddings endpoint answers 500"
    assert "by their words alone" in caplog.text
    assert "acme" not in caplog.text
    asked = len(endpoint.requests)
    now += REST_S - 1
    assert embedder.known_share("loss is nan") == 0.0
    assert len(endpoint.requests) == asked
    now += 2
    assert embedder.known_share("loss is nan") == 1.0
    assert trouble_of(embedder) is None


def test_a_question_waits_a_few_seconds_at_most(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = made(endpoint)
    monkeypatch.setattr(module, "QUESTION_S", 0.05)
    go = threading.Event()
    usual = endpoint.answer

    def late(path: str, body: Mapping[str, Any]) -> Answer:
        assert go.wait(10)
        return usual(path, body)

    monkeypatch.setattr(endpoint, "answer", late)
    try:
        assert embedder.known_share("loss is nan") == 0.0
    finally:
        go.set()
    assert embedder.trouble == "the embeddings endpoint does not answer"


# --- the index ------------------------------------------------------------------------------------------------------


def found(text: str, index: Index, embedder: Embedder) -> Sequence[str]:
    evidence = parse(text)
    query = build_query(evidence, Report(), evidence.question, glossary=glossary())
    published = {case.id: case for case in cases().published}
    hits = retrieve(query, index, embedder, cases=published)
    return [f"{hit.case_id} {'meaning' if hit.dense_rank else 'words'}" for hit in hits[:1]]


def test_an_index_is_built_and_searched_with_an_endpoint(endpoint: Endpoint, tmp_path: Path) -> None:
    embedder = made(endpoint)
    index = store.ensure(cases(), rules(), glossary(), embedder, tmp_path)
    assert index.manifest.embedder == embedder.identity
    assert found("training hang in allreduce", index, embedder) == ["nccl-hang meaning"]
    before = len(endpoint.requests)
    again = store.ensure(cases(), rules(), glossary(), made(endpoint), tmp_path)
    assert again.manifest == index.manifest
    assert len(endpoint.requests) == before + 1  # who it is; nothing is embedded anew


def test_a_question_is_answered_by_its_words_while_the_endpoint_is_down(endpoint: Endpoint, tmp_path: Path) -> None:
    embedder = made(endpoint)
    index = store.ensure(cases(), rules(), glossary(), embedder, tmp_path)
    endpoint.answers = [failing(500, "gone")] * 2
    assert found("training hang in allreduce", index, embedder) == ["nccl-hang words"]


def test_an_index_of_another_embedder_is_refused(endpoint: Endpoint, tmp_path: Path) -> None:
    embedder = made(endpoint)
    index = store.ensure(cases(), rules(), glossary(), embedder, tmp_path)
    other = made(endpoint)
    other.identity = replace(other.identity, name="openai:another")
    with pytest.raises(StoreError, match=r"built with the embedder openai:bge-m3, not with openai:another"):
        open_index(tmp_path / index.manifest.id, other)


def test_an_endpoint_that_fails_while_an_index_is_built_leaves_one_of_words(endpoint: Endpoint, tmp_path: Path) -> None:
    embedder = made(endpoint)
    endpoint.answers = [failing(500, "gone")] * 2
    with pytest.raises(StoreError, match="answers 500"):
        store.ensure(cases(), rules(), glossary(), embedder, tmp_path)
    (words,) = store.indexes(tmp_path)
    assert open_index(words, embedder).words_only
    assert list(tmp_path.glob(f"{store.BUILDING}*")) == []
