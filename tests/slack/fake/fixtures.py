"""Fixtures: a workspace that fails the test whose bot was refused something that the test did not assert."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slack.fake.local import LocalSlack

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")


@pytest.fixture
def own_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the machine (slack_sdk's async client ignores NO_PROXY)."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SKIP_SLACK_SDK_WARNING", "1")


@pytest.fixture
def strict(own_slack: None) -> Iterator[LocalSlack]:
    """A workspace at whose end nothing may have been refused that was not asserted by `LocalSlack.refused`."""
    with LocalSlack() as slack:
        yield slack
        slack.assert_nothing_unexpected()
