"""Permissions of the app: which are used for what, and which of them the workspace did not grant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainmedic.kb.errors import TrainmedicError
from trainmedic.ui.slack.calls import LOGIN_ERRORS, Calls, SlackLost, SlackRefused
from trainmedic.ui.slack.messages import messages

SCOPES = tuple(name.partition(".")[2] for name in messages if name.startswith("features."))
"""Every permission that a feature needs, in the order in which they are told."""


class SlackUnavailable(TrainmedicError):
    """Slack cannot be reached."""

    code = "slack_unavailable"
    kind = "unavailable"


class SlackLogin(TrainmedicError):
    """Slack does not accept a token."""

    code = "slack_login"
    kind = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the bot is. ``scopes`` is None where Slack did not say."""

    team: str
    enterprise: str | None
    user: str
    bot: str
    scopes: frozenset[str] | None

    def may(self, scope: str) -> bool:
        """Whether a permission was granted, as far as is known."""
        return self.scopes is None or scope in self.scopes

    @property
    def missing(self) -> tuple[str, ...]:
        """Permissions that features need and that are not granted."""
        return tuple(scope for scope in SCOPES if not self.may(scope))


async def identify(calls: Calls) -> Identity:
    """Ask Slack who the token belongs to. Raises `SlackLogin` or `SlackUnavailable`."""
    try:
        response = await calls.response("auth_test")
    except SlackRefused as refused:
        if refused.error in LOGIN_ERRORS:
            message = f"Slack does not accept SLACK_BOT_TOKEN ({refused.error})"
            raise SlackLogin(message, hint="docs/slack.md says where to find it") from None
        raise SlackUnavailable(f"Slack answered {refused.error}") from None
    except SlackLost as lost:
        raise SlackUnavailable(f"Slack cannot be reached ({lost})") from None
    data: Mapping[str, object] = response.data if isinstance(response.data, Mapping) else {}
    headers = {name.lower(): value for name, value in dict(response.headers).items()}
    granted = headers.get("x-oauth-scopes")
    return Identity(
        team=str(data.get("team_id", "")),
        enterprise=str(data["enterprise_id"]) if data.get("enterprise_id") else None,
        user=str(data.get("user_id", "")),
        bot=str(data.get("bot_id", "")),
        scopes=None if granted is None else frozenset(part.strip() for part in granted.split(",") if part.strip()),
    )


async def check_app_token(calls: Calls, app_token: str) -> None:
    """Open one Socket Mode address to see that the app token is right: the socket's own client would retry for ever.

    Raises `SlackLogin` or `SlackUnavailable`.
    """
    try:
        await calls("apps_connections_open", app_token=app_token)
    except SlackRefused as refused:
        if refused.error in LOGIN_ERRORS:
            raise SlackLogin(f"Slack does not accept SLACK_APP_TOKEN ({refused.error})") from None
        raise SlackUnavailable(f"Slack opens no socket ({refused.error})", hint="is Socket Mode on?") from None
    except SlackLost as lost:
        raise SlackUnavailable(f"Slack cannot be reached ({lost})") from None
