"""The Feishu bot against the platform's protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from tests.channels.fakes import MAX_CARD, FakeFeishu, served
from tests.incidents import KTO_SINGLE
from trainmedic.service.advisor import Advisor
from trainmedic.ui.channels.feishu.channel import FeishuChannel, feishu_card
from trainmedic.ui.channels.feishu.events import decrypted, text_of
from trainmedic.ui.channels.markdown_channel import Refused
from trainmedic.ui.present.slack_text import split_markdown

COMMAND = KTO_SINGLE
ANSWER_AND_DETAILS = 2
"""Messages of an answer, where no page can show the details."""
MOST_WORDS = 160
"""Words of the first: those of the answer's lead, and the sources that it cites."""
SECRET = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
Act = Callable[[httpx.AsyncClient], Awaitable[None]]


@pytest.fixture
def feishu() -> FakeFeishu:
    return FakeFeishu()


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmedic.ui.channels.feishu.channel.RETRY_S", (0.0, 0.0))


def with_bot(feishu: FakeFeishu, advisor: Advisor, act: Act, **options: Any) -> None:
    async def acting() -> None:
        async with served(feishu, advisor, **options) as client:
            await act(client)

    asyncio.run(acting())


def sends(feishu: FakeFeishu, advisor: Advisor, *events: dict[str, Any], **options: Any) -> None:
    """Every event is accepted at once; leaving the service waits for the answers."""

    async def act(client: httpx.AsyncClient) -> None:
        for event in events:
            headers, body = feishu.request(event)
            response = await client.post("/feishu/events", headers=headers, content=body)
            assert (response.status_code, response.json()) == (200, {})

    with_bot(feishu, advisor, act, **options)


def test_the_documented_example_is_decrypted() -> None:
    example = "P37w+VZImNgPEO1RBhJ6RtKl7n6zymIbEG1pReEzghk="
    assert decrypted(example, "test key") == b"hello world"
    with pytest.raises(Refused):
        decrypted(example, "another key")


def test_the_address_is_verified_by_its_challenge(feishu: FakeFeishu, advisor: Advisor) -> None:
    async def act(client: httpx.AsyncClient) -> None:
        event = {"challenge": "c-1", "token": feishu.verification_token, "type": "url_verification"}
        headers, body = feishu.request(event, **{"x-lark-signature": ""})
        response = await client.post("/feishu/events", headers=headers, content=body)
        assert response.json() == {"challenge": "c-1"}
        headers, body = feishu.request({**event, "token": "another"})
        assert (await client.post("/feishu/events", headers=headers, content=body)).status_code == 401

    with_bot(feishu, advisor, act)


def test_what_is_not_feishus_is_refused_and_not_answered(feishu: FakeFeishu, advisor: Advisor) -> None:
    async def act(client: httpx.AsyncClient) -> None:
        event = feishu.event(feishu.text(COMMAND))
        headers, _body = feishu.request(event)
        other = FakeFeishu()
        other.encrypt_key = "another key"
        requests = [
            (feishu.request(event, **{"x-lark-signature": "0" * 64}), 401, "wrong_signature"),
            (feishu.request(event, **{"x-lark-request-nonce": "n2"}), 401, "wrong_signature"),
            (feishu.request(feishu.event(feishu.text(COMMAND), token="another")), 401, "wrong_token"),
            (other.request(event), 401, None),
            ((headers, json.dumps(event).encode()), 401, "not_encrypted"),
            ((headers, b'{"encrypt": "AAAA"}'), 401, "wrong_encryption"),
            ((headers, b'{"encrypt": "not base 64"}'), 401, "wrong_encryption"),
            ((headers, b"[]"), 400, "malformed"),
            ((headers, b"\xff"), 400, "malformed"),
            ((headers, b"x" * (1024 * 1024 + 1)), 413, "too_large"),
        ]
        for (sent, content), status, code in requests:
            response = await client.post("/feishu/events", headers=sent, content=content)
            assert response.status_code == status, code
            assert code is None or response.json()["error"]["code"] == code

    with_bot(feishu, advisor, act)
    assert feishu.cards == {}


def test_a_private_message_is_answered_in_the_card_that_said_reading(feishu: FakeFeishu, advisor: Advisor) -> None:
    sends(feishu, advisor, feishu.event(feishu.text(f"loss is nan, why?\n```\n{COMMAND}\n```")))
    (first, last), (details,) = feishu.cards.values()
    assert len(last.partition("```diff")[0].split()) <= MOST_WORDS
    assert details
    assert first == "Reading…"
    assert "vanilla_loss" in last
    assert feishu.replied_to == ["om_1", "om_1"]


def test_what_is_not_for_the_bot_is_acknowledged_in_silence(feishu: FakeFeishu, advisor: Advisor) -> None:
    sends(
        feishu,
        advisor,
        feishu.event(feishu.text(COMMAND, group=True, mentioned=False), id="om_1"),
        feishu.event(feishu.text(COMMAND), sender="app", id="om_2"),
        {"schema": "2.0", "header": {"event_type": "im.chat.updated_v1", "token": "v-token"}, "event": {}},
        {"schema": "2.0", "header": {"token": "v-token"}},
    )
    assert feishu.cards == {}


def test_an_event_that_comes_again_is_answered_once_and_a_secret_is_masked_and_pointed_out(
    feishu: FakeFeishu, advisor: Advisor
) -> None:
    event = feishu.event(feishu.text(f"loss is nan\n```\nHF_TOKEN={SECRET} {COMMAND}\n```"))
    sends(feishu, advisor, event, event)
    assert len(feishu.cards) == ANSWER_AND_DETAILS
    assert SECRET not in str(feishu.cards)
    assert "still contains a secret" in next(iter(feishu.cards.values()))[-1]


def test_a_reply_under_a_log_is_about_the_log(feishu: FakeFeishu, advisor: Advisor) -> None:
    feishu.stored["om_root"] = {
        "message_id": "om_root",
        "msg_type": "file",
        "chat_id": "oc_chat",
        "sender": {"id": "ou_other", "sender_type": "user"},
        "body": {"content": json.dumps({"file_key": "file_1", "file_name": "train.sh"})},
    }
    feishu.files[("om_root", "file_1")] = COMMAND.encode()
    may_not_be_read = feishu.event(feishu.text(f"why nan?\n{COMMAND}", group=True, root_id="om_unknown"), id="om_2")
    sends(feishu, advisor, feishu.event(feishu.text("怎么回事？", group=True, root_id="om_root")), may_not_be_read)
    texts = [cards[-1] for cards in feishu.cards.values()]
    assert sum("vanilla_loss" in text for text in texts) >= 2
    assert any("原因" in text for text in texts)
    assert "@_user_1" not in "".join(texts)


def test_a_file_is_read_and_what_is_none_is_named(feishu: FakeFeishu, advisor: Advisor) -> None:
    feishu.files[("om_1", "k1")] = COMMAND.encode()
    feishu.files[("om_2", "k2")] = b"\x7fELF\0\0\0"

    def file(name: str, key: str) -> dict[str, Any]:
        content = json.dumps({"file_key": key, "file_name": name})
        return {"chat_type": "p2p", "message_type": "file", "content": content}

    picture = {"chat_type": "p2p", "message_type": "image", "content": json.dumps({"image_key": "i"})}
    sends(
        feishu,
        advisor,
        feishu.event(file("train.sh", "k1"), id="om_1"),
        feishu.event(file("model.bin", "k2"), id="om_2"),
        feishu.event(file("lost.log", "k3"), id="om_3"),
        feishu.event(picture, id="om_4"),
    )
    by_question = dict(zip(feishu.replied_to, (texts[-1] for texts in feishu.cards.values()), strict=True))
    assert "vanilla_loss" in by_question["om_1"]
    assert "model.bin (not a text file)" in by_question["om_2"]
    assert "lost.log (could not be downloaded (HTTP 400))" in by_question["om_3"]
    assert "image (image; paste the text instead)" in by_question["om_4"]


def test_a_token_that_has_expired_is_replaced_and_a_busy_platform_asked_again(
    feishu: FakeFeishu, advisor: Advisor
) -> None:
    feishu.codes = [99991663, 99991400]
    sends(feishu, advisor, feishu.event(feishu.text(COMMAND)))
    assert feishu.tokens == 2
    assert len(feishu.cards) == ANSWER_AND_DETAILS


def test_a_refusal_is_logged_and_ends_nothing(
    feishu: FakeFeishu, advisor: Advisor, caplog: pytest.LogCaptureFixture
) -> None:
    feishu.codes = [230002] * 2
    sends(feishu, advisor, feishu.event(feishu.text(COMMAND)))
    assert feishu.cards == {}
    assert "no message could be delivered" in caplog.text
    sends(feishu, advisor, feishu.event(feishu.text(COMMAND), id="om_2"))
    assert len(feishu.cards) == ANSWER_AND_DETAILS


def test_rich_text_keeps_its_code_and_nobody_is_mentioned() -> None:
    content = {
        "title": "NaN",
        "content": [
            [{"tag": "at", "user_id": "@_user_1", "user_name": "trainmedic"}, {"tag": "text", "text": " why?"}],
            [{"tag": "code_block", "language": "SHELL", "text": "a\nb\n"}],
            [{"tag": "a", "href": "https://x.test", "text": "log"}],
        ],
    }
    assert text_of("post", json.dumps(content)) == "NaN\n@_user_1 why?\n\n```\na\nb\n```\n\nlog https://x.test"
    assert text_of("post", json.dumps({"zh_cn": content})).startswith("NaN")
    assert text_of("text", "no json") == ""
    assert "<at id=all>" not in str(feishu_card("<at id=all></at>"))


def test_a_long_answer_is_several_cards_within_the_limit() -> None:
    pieces = split_markdown("损失为空。\n\n" * 6_000, FeishuChannel.page_characters)
    assert len(pieces) > 1
    assert max(len(json.dumps(feishu_card(piece), ensure_ascii=False).encode()) for piece in pieces) < MAX_CARD
