"""The DingTalk robot against the platform's protocol."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.channels.fakes import FakeDingTalk, served
from tests.incidents import KTO_SINGLE
from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.advisor import Advisor
from trainmedic.service.settings import Settings
from trainmedic.ui.channels.dingtalk import configured as dingtalk_configured
from trainmedic.ui.channels.dingtalk.events import signature
from trainmedic.ui.channels.feishu import configured as feishu_configured

COMMAND = KTO_SINGLE


@pytest.fixture
def dingtalk() -> FakeDingTalk:
    return FakeDingTalk()


def sends(dingtalk: FakeDingTalk, advisor: Advisor, *events: dict[str, Any], **settings: Any) -> None:
    async def acting() -> None:
        async with served(dingtalk, advisor, **settings) as client:
            for event in events:
                headers, body = dingtalk.request(event)
                response = await client.post("/dingtalk/events", headers=headers, content=body)
                assert (response.status_code, response.json()) == (200, {})

    asyncio.run(acting())


def sent_file(name: str) -> dict[str, Any]:
    return {"msgtype": "file", "content": {"downloadCode": "code1", "fileName": name}, "text": None}


def text_of(message: dict[str, Any]) -> str:
    return str(message["markdown"]["text"])


def test_the_signature_is_the_documented_one() -> None:
    # HMAC-SHA256 of the secret over "timestamp\nsecret" in Base64, computed with openssl.
    assert signature("1577262236757", "this is a secret") == b"DJrE6qdyVGCQz9z5r2MDuNcNAhwYnuAkyj13cx169CA="


def test_a_mention_is_answered_through_the_sessions_webhook(dingtalk: FakeDingTalk, advisor: Advisor) -> None:
    sends(dingtalk, advisor, dingtalk.message(f"loss 变成 nan，怎么回事？\n```\n{COMMAND}\n```"))
    message = dingtalk.sent[0]
    assert "vanilla_loss" in text_of(message)
    assert text_of(message).endswith("@staff1")
    assert message["at"] == {"atUserIds": ["staff1"], "isAtAll": False}
    dingtalk.sent.clear()
    sends(dingtalk, advisor, dingtalk.message(COMMAND, group=False))
    assert dingtalk.sent[0]["at"]["atUserIds"] == []


def test_what_is_not_dingtalks_is_refused_and_not_answered(dingtalk: FakeDingTalk, advisor: Advisor) -> None:
    async def acting() -> None:
        async with served(dingtalk, advisor) as client:
            event = dingtalk.message(COMMAND)
            requests = [
                (dingtalk.request(event, sign="AAAA"), 401, "wrong_signature"),
                (dingtalk.request(event, timestamp="1577262236757"), 401, "wrong_signature"),
                (dingtalk.request(event, timestamp="soon"), 401, "unsigned"),
                (dingtalk.request(event, at=time.time() - 3_700), 401, "too_old"),
                (dingtalk.request(event, at=time.time() + 3_700), 401, "too_old"),
                ((dingtalk.request(event)[0], b"[1]"), 400, "malformed"),
                ((dingtalk.request(event)[0], b"{"), 400, "malformed"),
            ]
            for (headers, body), status, code in requests:
                response = await client.post("/dingtalk/events", headers=headers, content=body)
                assert (response.status_code, response.json()["error"]["code"]) == (status, code)
            assert (await client.post("/dingtalk/events", content=b"{}")).status_code == 401

    asyncio.run(acting())
    assert dingtalk.sent == []


def test_answers_go_to_dingtalk_alone(
    dingtalk: FakeDingTalk, advisor: Advisor, caplog: pytest.LogCaptureFixture
) -> None:
    for url in (
        "http://evil.test/x",
        "https://oapi.dingtalk.com.evil.test/x",
        "http://oapi.dingtalk.com/x",
        "http://[x",
    ):
        sends(dingtalk, advisor, dingtalk.message(COMMAND, id=url, sessionWebhook=url))
    assert dingtalk.sent == []
    assert caplog.text.count("no message could be delivered") == 4


def test_a_file_and_a_quoted_text_are_read(dingtalk: FakeDingTalk, advisor: Advisor) -> None:
    dingtalk.files["code1"] = COMMAND.encode()
    file = sent_file("train.sh")
    quote = {"content": " loss is nan, why?", "isReplyMsg": True, "repliedMsg": {"content": {"text": COMMAND}}}
    picture = {"msgtype": "picture", "content": {"downloadCode": "p"}, "text": None}
    rich = {"msgtype": "richText", "content": {"richText": [{"text": COMMAND}, {"type": "picture"}]}, "text": None}
    lost = {"msgtype": "file", "content": {"downloadCode": "none", "fileName": "lost.log"}, "text": None}
    events: list[dict[str, Any]] = [file, {"text": quote}, picture, rich, lost]
    texts = []
    for number, event in enumerate(events):
        sends(dingtalk, advisor, dingtalk.message(id=f"m{number}", group=False, **event))
        texts.append("".join(map(text_of, dingtalk.sent)))
        dingtalk.sent.clear()
    assert ["vanilla_loss" in text for text in texts] == [True, True, False, True, False]
    assert "picture (image; paste the text instead)" in texts[2]
    assert "lost.log (could not be downloaded (unknownError))" in texts[4]


@pytest.mark.parametrize(
    "storage", ["http://169.254.169.254", "https://dingtalk.com.evil.test", "https://user@down.dingtalk.com"]
)
def test_a_file_is_read_from_dingtalks_own_storage_alone(
    dingtalk: FakeDingTalk, advisor: Advisor, storage: str
) -> None:
    dingtalk.files["code1"] = COMMAND.encode()
    dingtalk.storage = storage
    sends(dingtalk, advisor, dingtalk.message(group=False, **sent_file("train.sh")))
    assert "train.sh (its address is not the platform's)" in text_of(dingtalk.sent[0])


def test_a_file_larger_than_the_limit_is_not_read_to_its_end(
    dingtalk: FakeDingTalk, advisor: Advisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmedic.ui.channels.files.MAX_BYTES", 1024 * 1024)
    dingtalk.files["code1"] = b"a" * (1024 * 1024 + 1)
    sends(dingtalk, advisor, dingtalk.message(group=False, **sent_file("big.log")))
    assert "big.log (larger than 1 MiB" in text_of(dingtalk.sent[0])


def test_a_follow_up_knows_what_was_sent_before(dingtalk: FakeDingTalk, advisor: Advisor) -> None:
    async def acting() -> None:
        async with served(dingtalk, advisor) as client:
            for id, text in {
                "m1": f"loss is nan, why?\n```\n{COMMAND}\n```",
                "m2": "and what should I change?",
            }.items():
                dingtalk.sent.clear()
                headers, body = dingtalk.request(dingtalk.message(text, id=id))
                await client.post("/dingtalk/events", headers=headers, content=body)
                while not dingtalk.sent:
                    await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(acting(), 60))
    assert "vanilla_loss" in text_of(dingtalk.sent[0])


def test_a_message_without_words_gets_help(dingtalk: FakeDingTalk, advisor: Advisor) -> None:
    sends(dingtalk, advisor, dingtalk.message(""))
    assert "pip list" in text_of(dingtalk.sent[0])


def test_half_a_configuration_is_refused_with_what_is_missing() -> None:
    assert not dingtalk_configured(Settings())
    assert not feishu_configured(Settings())
    with pytest.raises(InvalidSettings, match="dingtalk_client_secret is not set"):
        dingtalk_configured(Settings(dingtalk_client_id="d"))
    with pytest.raises(InvalidSettings, match="feishu_app_secret, feishu_encrypt_key is not set"):
        feishu_configured(Settings(feishu_app_id="cli_1"))
