"""Files that people attach: text is evidence, everything else is named with the reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest

from tests.every_case import every_case
from tests.slack.bots import COMMAND
from tests.slack.fake import LocalSlack, SlackFile
from trainmedic.kb.parse.text import pictures
from trainmedic.ui.channels.files import Downloads
from trainmedic.ui.channels.slack.bot import SlackBot
from trainmedic.ui.channels.slack.files import HOSTS, is_page

SCRIPT = f"#!/bin/bash\n{COMMAND}\n"
ASKED = "<@U0BOT> my KTO loss is NaN from the first step, why?"


@pytest.fixture
def one_mebibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmedic.ui.channels.files.MAX_BYTES", 1024 * 1024)


@pytest.mark.parametrize(
    "kind",
    [{"mode": "snippet"}, {"access": "check_file_info"}, {"mimetype": "application/octet-stream"}],
    ids=str,
)
async def test_an_attached_script_is_read(strict: LocalSlack, bot: SlackBot, kind: dict[str, Any]) -> None:
    said = strict.says(ASKED, files=[strict.upload("train.sh", SCRIPT, **kind)])
    reply = await strict.until_said("Cause found", thread_ts=said.ts)
    assert "train.sh:2:" in reply.shown
    assert "a/train.sh" in reply.shown
    assert "Not read" not in reply.shown


async def test_files_of_the_whole_thread_are_read_once_each(strict: LocalSlack, bot: SlackBot) -> None:
    script = strict.upload("train.sh", SCRIPT)
    root = strict.says("loss is NaN", files=[script])
    strict.says("here it is again", thread_ts=root.ts, files=[script])
    strict.says("<@U0BOT> why?", thread_ts=root.ts)
    reply = await strict.until_said("Cause found", thread_ts=root.ts)
    assert "train.sh:2:" in reply.shown
    assert len(strict.files.downloads) == 1


NOT_READ: tuple[tuple[dict[str, Any], str], ...] = (
    ({"content": b"\x89PNG\r\n\x1a\n\0", "mimetype": "image/png"}, "image; paste the text instead"),
    ({"mimetype": "application/msword"}, "not a text file"),
    ({"content": b"\x7fELF\0\0\0", "mimetype": ""}, "not a text file"),
    ({"mode": "external"}, "not stored on Slack"),
    ({"access": "access_denied"}, "no access"),
    ({"claims": 50_000_000}, "larger than 1 MiB"),
    ({"repeat": 600, "claims": 10}, "larger than 1 MiB"),
    ({"elsewhere": True}, "login page"),
    ({"content": "<!DOCTYPE html><html>sign in</html>", "name": "train.log"}, "login page"),
    ({"mode": "tombstone"}, "deleted"),
    ({"mode": "hidden_by_limit"}, "hidden by the workspace's plan"),
)


async def test_what_is_not_read_is_named_with_the_reason(
    strict: LocalSlack, one_mebibyte: None, bot: SlackBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "readable", lambda: False)
    files: list[SlackFile] = []
    for number, (kind, _) in enumerate(NOT_READ):
        given: dict[str, Any] = {"content": SCRIPT * 20, **kind}
        files.append(strict.upload(given.pop("name", f"thing{number}"), given.pop("content"), **given))
    said = strict.says(ASKED, files=files)
    reply = await strict.until_said("Not read:", thread_ts=said.ts)
    for reason, times in Counter(reason for _, reason in NOT_READ).items():
        assert reply.shown.count(reason) == times, reason
    assert strict.files.leaks == []


async def test_a_permission_taken_away_meanwhile_is_noticed(strict: LocalSlack, bot: SlackBot) -> None:
    strict.world.scopes.discard("files:read")
    said = strict.says(ASKED, files=[strict.upload("train.sh", SCRIPT)])
    await strict.until_said("Slack sent its login page", thread_ts=said.ts)
    strict.refused("login_page", "files")


@every_case(
    ("url", "allowed"),
    [
        ("https://files.slack.com/files-pri/T-F/a", True),
        ("https://acme.slack-files.com/a", True),
        ("https://slack.com/a", True),
        ("http://files.slack.com/a", False),
        ("https://slack.com.evil.example/a", False),
        ("https://evilslack.com/a", False),
        ("https://user:pass@files.slack.com/a", False),
        ("http://169.254.169.254/latest", False),
        ("file:///etc/passwd", False),
        ("", False),
        ("https://[", False),
        ("https://evil.example\\.slack.com/a", False),
        ("http://127.0.0.1:99/files-pri/a", True),
        ("http://127.0.0.1:98/files-pri/a", False),
    ],
)
def test_the_token_goes_to_slack_alone(url: str, allowed: bool) -> None:
    client = httpx.AsyncClient()
    downloads = Downloads(client=client, hosts=HOSTS, api_url="http://127.0.0.1:99/api/", max_bytes=1)
    assert downloads.is_own(url) is allowed


def test_a_page_is_known_by_its_first_words() -> None:
    assert is_page(b"\xef\xbb\xbf\n<!DOCTYPE HTML><html>")
    assert is_page(b"<html lang=en>")
    assert not is_page(b"loss: 1.0 <html>")
