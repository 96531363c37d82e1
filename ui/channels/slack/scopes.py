"""The app's permissions: which features need them, and which were not granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainmedic.kb.errors import TrainmedicError
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.slack.calls import LOGIN_ERRORS, Calls, SlackLost, SlackRefused

SCOPES = tuple(name.partition(".")[2] for name in messages if name.startswith("features."))
"""Every permission that a feature needs, in the order of the messages."""


class SlackUnavailable(TrainmedicError):
    code = "slack_unavailable"
    kind = "unavailable"


class SlackLogin(TrainmedicError):
    code = "slack_login"
    kind = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The bot's identity. ``scopes`` is None if Slack did not list them."""

    team: str
    enterprise: str | None
    user: str
    bot: str
    scopes: frozenset[str] | None

    def may(self, scope: str) -> bool:
        """Whether a permission was granted; True if unknown."""
        return self.scopes is None or scope in self.scopes

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(scope for scope in SCOPES if not self.may(scope))


async def identify(calls: Calls) -> Identity:
    """Ask Slack whose token this is. Raises `SlackLogin` or `SlackUnavailable`."""
    try:
        response = await calls.response("auth_test")
    except SlackRefused as refused:
        if refused.error in LOGIN_ERRORS:
            message = f"Slack does not accept SLACK_BOT_TOKEN ({refused.error})"
            raise SlackLogin(message, hint="docs/connect/channels.md says where to find it") from None
        raise SlackUnavailable(f"Slack answered {refused.error}") from None
    except SlackLost as lost:
        raise SlackUnavailable(f"Slack cannot be reached ({lost})") from None
    data: Mapping[str, object] = response.data if isinstance(response.data, Mapping) else {}
    headers = {name.lower(): value for name, value in dict(response.headers).items()}
    # Slack lists the granted permissions only in this header, not in the body.
    granted = headers.get("x-oauth-scopes")
    return Identity(
        team=str(data.get("team_id", "")),
        enterprise=str(data["enterprise_id"]) if data.get("enterprise_id") else None,
        user=str(data.get("user_id", "")),
        bot=str(data.get("bot_id", "")),
        scopes=None if granted is None else frozenset(part.strip() for part in granted.split(",") if part.strip()),
    )


async def check_app_token(calls: Calls, app_token: str) -> None:
    """Open one Socket Mode address to check the app token: the socket's own client would retry forever.

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
