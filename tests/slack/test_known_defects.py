"""Known defects in Slack: a list of packages, as text or as a file, is audited as `/v1/audit` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slack.bots import COMMAND, settled
from tests.slack.fake import ANN, GENERAL, LocalSlack
from tests.slack.fake.blocks import check_blocks
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.ui.channels.question import wants_audit
from trainmedic.ui.channels.slack.bot import SlackBot
from trainmedic.ui.present.slack_audit import MOST, known_defects, render_audit
from trainmedic.ui.present.slack_text import escape

ENVIRONMENTS = Path(__file__).parents[1] / "defects" / "environments"
REQUIREMENTS = (ENVIRONMENTS / "trl-grpo-2025.txt").read_text("utf-8")
PIP_LIST = "Package      Version\n------------ -------\ntransformers 4.52.3\ntrl          0.18.0\nsix          1.17.0\n"


@pytest.mark.parametrize(
    ("text", "head", "more"),
    [
        (f"<@U0BOT>\n```\n{PIP_LIST}```", "Known defects of these versions", "more; trainmedic audit"),
        (f"<@U0BOT> 已知缺陷\n```\n{PIP_LIST}```", "这些版本的已知缺陷", "另有"),
    ],
)
async def test_a_list_of_packages_is_answered_with_its_known_defects(
    strict: LocalSlack, bot: SlackBot, text: str, head: str, more: str
) -> None:
    said = strict.says(text)
    reply = await strict.until_said(head, thread_ts=said.ts)
    assert reply.shown.count("•") == MOST
    assert more in reply.shown.replace("`", "")
    assert "transformers 4.52.3" in reply.shown
    assert "Not enough" not in reply.shown


async def test_a_requirements_file_is_audited(strict: LocalSlack, bot: SlackBot) -> None:
    said = strict.says("<@U0BOT>", files=[strict.upload("requirements.txt", REQUIREMENTS)])
    reply = await strict.until_said("Known defects", thread_ts=said.ts)
    assert "8 packages checked" in reply.shown


async def test_an_answer_lists_its_defects_beside_its_cause(strict: LocalSlack, bot: SlackBot) -> None:
    said = strict.says(
        "<@U0BOT> GRPO curve changed after the upgrade with the same config, scale_rewards batch behaves like group"
        "\n```\ntrl==0.22.1\n```"
    )
    reply = await strict.until_said("Cause found", thread_ts=said.ts)
    assert "Known defects of these versions" in reply.shown


async def test_the_command_audits_for_its_asker_alone(strict: LocalSlack, bot: SlackBot) -> None:
    await strict.until_acked(strict.command("audit trl==0.18.0 transformers==4.52.3"))
    whisper = await strict.until_whispered("Known defects", user=ANN)
    assert whisper.shown.count("•") == MOST
    assert strict.messages(GENERAL) == []


@pytest.mark.bot(slack_channels={"*": {"quiet": True}})
async def test_without_defects_a_quiet_channel_stays_quiet(strict: LocalSlack, bot: SlackBot) -> None:
    said = strict.says("<@U0BOT>\n```\nsix==1.17.0\n```")
    for delivery in said.deliveries:
        await strict.until_acked(delivery)
    await settled(bot)
    assert strict.replies(said.ts) == []


def test_certain_ones_come_first_and_the_worst_of_them_before_others(advisor: Advisor) -> None:
    environment = [
        Attachment(name=name, content=(ENVIRONMENTS / name).read_text("utf-8"))
        for name in ("openrlhf-ppo-2025.txt", "openrlhf-ppo-2025.sh")
    ]
    view = advisor.audit(environment, "en")
    replies = render_audit(view, "en")
    assert len(replies) == 1
    check_blocks(list(replies[0].blocks))
    listed = known_defects(view.defects, view.changes, "en")[0]["text"]["text"]
    certain = [item for item in view.defects if item.certain][:MOST]
    places = [listed.find(escape(item.title)) for item in certain]
    assert certain
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("question", "files", "wanted"),
    [
        (f"```\n{PIP_LIST}```", {}, True),
        ("audit", {"pip.txt": PIP_LIST, "train.sh": COMMAND}, True),
        ("", {"pip.txt": PIP_LIST, "train.sh": COMMAND}, False),
        (f"is this list right?\n```\n{PIP_LIST}```", {}, False),
        ("", {"train.log": "{'loss': 1.0, 'grad_norm': 2.0}\n" * 3, "pip.txt": PIP_LIST}, False),
        ("", {}, False),
    ],
)
def test_what_asks_for_an_audit(question: str, files: dict[str, str], wanted: bool) -> None:
    assert wants_audit(question, [Attachment(name=name, content=text) for name, text in files.items()], parse) is wanted
