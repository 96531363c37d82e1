"""A fake Slack on loopback: the Web API methods that the bot calls, Socket Mode, signed HTTP requests and files.

    with LocalSlack() as slack:  # or the fixture `strict`
        ... start the bot with slack.api_url and slack.app_token ...
        await slack.until_connected()
        said = slack.says("<@U0BOT> why is my loss NaN?")
        reply = await slack.until_said("learning rate", thread_ts=said.ts)
        slack.clicks(reply, "feedback", positive=True)

``ANN`` and ``BEN`` are people; ``GENERAL`` is a channel with the bot, ``OTHER`` one without it, ``PRIVATE`` a private
one with it, ``DM`` Ann's conversation with it. Whatever Slack would refuse is refused with Slack's error and kept; the
fixture ``strict`` fails a test at its end if there is a refusal that `LocalSlack.refused` has not asserted.
"""

from __future__ import annotations

from tests.slack.fake.local import LocalSlack
from tests.slack.fake.model import ANN, BEN, DM, GENERAL, OTHER, PRIVATE, Fault, Message, SlackFile

__all__ = ["ANN", "BEN", "DM", "GENERAL", "OTHER", "PRIVATE", "Fault", "LocalSlack", "Message", "SlackFile"]
