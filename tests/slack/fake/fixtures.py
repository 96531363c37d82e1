"""Fixtures: a workspace that fails the test whose bot was refused something that the test did not assert."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.slack.fake.local import LocalSlack

BOLT_READS = ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_APP_TOKEN")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")


@pytest.fixture
def own_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine reaches the bot, and no proxy (slack_sdk's async client ignores NO_PROXY)."""
    for name in (*BOLT_READS, *PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SKIP_SLACK_SDK_WARNING", "1")


@pytest.fixture
def slack(own_slack: None) -> Iterator[LocalSlack]:
    """A workspace that keeps what it refuses and leaves judging to the test."""
    with LocalSlack() as running:
        yield running


@contextmanager
def judged(slack: LocalSlack) -> Iterator[LocalSlack]:
    """A workspace at whose end nothing may have been refused that was not asserted by `LocalSlack.refused`."""
    yield slack
    slack.assert_nothing_unexpected()


@pytest.fixture
def strict(slack: LocalSlack) -> Iterator[LocalSlack]:
    """The same workspace, judged at its end."""
    with judged(slack):
        yield slack
