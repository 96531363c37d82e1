"""Slack's limits on blocks: those of single blocks as slack_sdk knows them, and those of a message.

The size of all blocks together is undocumented (bolt-js issue 2509).
"""

from __future__ import annotations

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

from tests.slack.fake.model import Json, Refused, block_texts

MARKDOWN_TOTAL = 12_000
ALL_TEXT = 13_200
MESSAGE_BLOCKS = 50
TEXT_OBJECT = 3_000


def check_blocks(blocks: list[Json]) -> list[Json]:
    """The blocks of a message, or a refusal: invalid_blocks, msg_blocks_too_long, msg_too_long."""
    if len(blocks) > MESSAGE_BLOCKS:
        raise Refused("invalid_blocks", f"no more than {MESSAGE_BLOCKS} items allowed [json-pointer:/blocks]")
    for number, block in enumerate(blocks):
        if problem := block_problem(block):
            raise Refused("invalid_blocks", f"{problem} [json-pointer:/blocks/{number}]")
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    if len(ids) != len(set(ids)):
        raise Refused("invalid_blocks", "`block_id` values must be unique [json-pointer:/blocks]")
    if sum(len(block["text"]) for block in blocks if block["type"] == "markdown") > MARKDOWN_TOTAL:
        raise Refused("msg_too_long")
    if sum(len(text) for text in block_texts(blocks)) > ALL_TEXT:
        raise Refused("msg_blocks_too_long")
    return blocks


def block_problem(block: Json) -> str | None:
    """What Slack objects to in a block. slack_sdk drops fields and elements that it does not know."""
    try:
        parsed = Block.parse(block)
        known = parsed.to_dict() if parsed else {}
    except SlackObjectFormationError as error:
        return str(error)
    if known != block:
        return f"invalid block of type {block.get('type')}"
    elements = block.get("elements", ())
    actions = [element["action_id"] for element in elements if "action_id" in element]
    if len(actions) != len(set(actions)):
        return "`action_id` already exists"
    if any(len(str(element.get("text", ""))) > TEXT_OBJECT for element in elements if block["type"] == "context"):
        return f"must be less than {TEXT_OBJECT + 1} characters"
    return None


def stored(blocks: list[Json]) -> list[Json]:
    """The blocks as Slack stores them: Markdown becomes rich text."""
    return [rich(block["text"]) if block["type"] == "markdown" else block for block in blocks]


def rich(text: str) -> Json:
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [section]}
