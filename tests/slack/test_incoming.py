"""What people write in Slack, as the text they meant."""

from __future__ import annotations

from typing import Any

from tests.every_case import every_case
from trainmedic.ui.channels.slack.incoming import incoming_message, is_written, mentions, text_of, unescaped

BOT = "U0BOT"


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"text": "ignored", "blocks": [{"type": "rich_text", "elements": list(elements)}]}


def section(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": list(elements)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@every_case(
    ("slack", "typed"),
    [
        ("<@U0BOT> why?", "why?"),
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("see <https://a.example/x|the page>", "see https://a.example/x"),
        ("run <http://train.sh|train.sh>", "run train.sh"),
        ("mail <mailto:a@b.example|a@b.example>", "mail a@b.example"),
        ("ask <@U0BEN> in <#C1|general> <!here>", "ask @U0BEN in #general @here"),
        ("&lt;@U0BOT&gt; was typed", "<@U0BOT> was typed"),
        ("```lr: 1e-6```", "```\nlr: 1e-6\n```"),
    ],
)
def test_slacks_text_is_read_as_typed(slack: str, typed: str) -> None:
    assert unescaped(slack, BOT) == typed


def test_a_pasted_config_is_read_from_the_rich_text() -> None:
    message = rich(
        section({"type": "user", "user_id": BOT}, text(" loss is NaN with")),
        {"type": "rich_text_preformatted", "elements": [text("lr: 1e-6\nurl: "), {"type": "link", "url": "http://a"}]},
        {"type": "rich_text_list", "style": "bullet", "elements": [section(text("one")), section(text("two"))]},
        {"type": "rich_text_quote", "elements": [text("he said\nso")]},
    )
    assert text_of(message, BOT) == (
        "loss is NaN with\n```\nlr: 1e-6\nurl: http://a\n```\n- one\n- two\n> he said\n> so"
    )


def test_a_fence_inside_a_code_block_does_not_end_it() -> None:
    message = rich({"type": "rich_text_preformatted", "elements": [text("a\n```\nb")]})
    assert text_of(message, BOT) == "````\na\n```\nb\n````"


def test_emoji_are_characters_again() -> None:
    message = rich(
        section({"type": "emoji", "name": "100", "unicode": "1f4af"}, {"type": "emoji", "name": "party_parrot"})
    )
    assert text_of(message, BOT) == "💯:party_parrot:"


def test_alerts_of_apps_are_read_from_what_they_attach() -> None:
    message = {
        "bot_id": "B1",
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "job *7* failed"}}],
        "attachments": [{"title": "RuntimeError", "text": "a &gt; b"}, {"fallback": "more"}],
    }
    assert text_of(message, BOT) == "job *7* failed\nRuntimeError\na > b\nmore"


def test_strange_shapes_are_read_as_nothing() -> None:
    for message in ({}, {"blocks": [None, 3, {"type": "rich_text", "elements": "no"}]}, {"attachments": [None, "x"]}):
        assert text_of(message, BOT) == ""


def test_who_wrote_is_told_apart() -> None:
    assert incoming_message({"user": BOT, "ts": "1.2"}, BOT, "B0").ours
    assert incoming_message({"bot_id": "B0", "ts": "1.2"}, BOT, "B0").ours
    other = incoming_message({"bot_id": "B1", "ts": "1.2", "files": [{"id": "F"}, None]}, BOT, "B0")
    assert (other.bot, other.ours, len(other.files)) == (True, False, 1)


def test_edits_and_joins_are_not_written() -> None:
    assert is_written({"text": "x"})
    assert is_written({"subtype": "file_share"})
    assert not is_written({"subtype": "message_changed"})
    assert not is_written({"subtype": "channel_join"})
    assert not is_written({"hidden": True})


def test_a_mention_is_seen_in_both_spellings() -> None:
    assert mentions({"text": "hi <@U0BOT>"}, BOT)
    assert mentions({"text": "hi <@U0BOT|medic>"}, BOT)
    assert not mentions({"text": "hi &lt;@U0BOT&gt;"}, BOT)
