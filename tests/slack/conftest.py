"""The fake Slack's fixtures, for all tests of this folder."""

from __future__ import annotations

from tests.slack.fake.fixtures import own_slack, strict

__all__ = ["own_slack", "strict"]
