"""Slack's limits on blocks, views and metadata, refused with its json-pointer messages.

Limits: Slack's Block Kit reference (2026-08); the size of all blocks together is undocumented (bolt-js issue 2509).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.slack.fake.values import Json, Refused, texts

MARKDOWN_TOTAL = 12_000
ALL_TEXT = 13_200
MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
VIEW_BYTES = 250_000
METADATA_BYTES = 16_000
CARD_STATES = ("pending", "in_progress", "complete", "error")
ONLY_MESSAGES = ("context_actions", "markdown", "task_card", "plan", "table")
BUTTON_STYLES = ("primary", "danger")


class _Checker:
    """Walks through blocks and collects what is wrong with them."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.action_ids: set[str] = set()

    def say(self, at: str, what: str) -> None:
        self.wrong.append(f"{what} [json-pointer:{at}]")

    def string(self, holder: Json, name: str, at: str, most: int, *, needed: bool = True) -> None:
        value = holder.get(name)
        if value is None:
            if needed:
                self.say(at, f"missing required field: {name}")
        elif not isinstance(value, str):
            self.say(f"{at}/{name}", "must be a string")
        elif needed and not value:
            self.say(f"{at}/{name}", "must be more than 0 characters")
        elif len(value) > most:
            self.say(f"{at}/{name}", f"must be less than {most + 1} characters")

    def text(self, holder: Json, name: str, at: str, most: int, *, plain: bool = False, needed: bool = True) -> None:
        """A text object."""
        value = holder.get(name)
        if value is None:
            if needed:
                self.say(at, f"missing required field: {name}")
            return
        if not isinstance(value, dict) or value.get("type") not in ("plain_text", "mrkdwn"):
            self.say(f"{at}/{name}", "must be a text object")
            return
        if plain and value["type"] != "plain_text":
            self.say(f"{at}/{name}/type", "must be plain_text")
        self.string(value, "text", f"{at}/{name}", most)

    def several(self, holder: Json, name: str, at: str, most: int, each: Callable[[Json, str], None]) -> None:
        """A list of 1 to ``most`` objects."""
        value = holder.get(name)
        if not isinstance(value, list):
            self.say(at, f"missing required field: {name}")
            return
        if not value:
            self.say(f"{at}/{name}", "must contain at least 1 item")
        if len(value) > most:
            self.say(f"{at}/{name}", f"no more than {most} items allowed")
        for number, item in enumerate(value):
            if isinstance(item, dict):
                each(item, f"{at}/{name}/{number}")
            else:
                self.say(f"{at}/{name}/{number}", "must be an object")

    def choice(self, holder: Json, name: str, at: str, allowed: tuple[str, ...]) -> None:
        if name in holder and holder[name] not in allowed:
            self.say(f"{at}/{name}", f"must be one of {', '.join(allowed)}")

    # ── elements ─────────────────────────────────────────────────────────────────────────────────────────────────────
    def action_id(self, element: Json, at: str) -> None:
        self.string(element, "action_id", at, 255, needed=False)
        name = element.get("action_id")
        if isinstance(name, str):
            if name in self.action_ids:
                self.say(f"{at}/action_id", f"`action_id` {name} already exists")
            self.action_ids.add(name)

    def element(self, element: Json, at: str) -> None:
        kind = element.get("type")
        self.action_id(element, at)
        match kind:
            case "button":
                self.text(element, "text", at, 75, plain=True)
                self.string(element, "value", at, 2000, needed=False)
                self.string(element, "url", at, 3000, needed=False)
                self.string(element, "accessibility_label", at, 75, needed=False)
                self.choice(element, "style", at, BUTTON_STYLES)
                self.confirm(element, at)
            case "overflow":
                self.several(element, "options", at, 5, self.option)
            case "static_select" | "multi_static_select":
                if "option_groups" not in element:
                    self.several(element, "options", at, 100, self.option)
                self.text(element, "placeholder", at, 150, plain=True, needed=False)
            case "checkboxes" | "radio_buttons":
                self.several(element, "options", at, 10, self.option)
            case "plain_text_input" | "rich_text_input" | "number_input" | "url_text_input" | "email_text_input":
                self.text(element, "placeholder", at, 150, plain=True, needed=False)
            case "image":
                self.string(element, "alt_text", at, 2000)
            case (
                "users_select" | "conversations_select" | "channels_select" | "external_select" | "datepicker"
                | "timepicker" | "datetimepicker" | "multi_users_select" | "multi_conversations_select" | "file_input"
            ):  # fmt: skip
                pass
            case _:
                self.say(f"{at}/type", f"unsupported type: {kind}")

    def option(self, option: Json, at: str) -> None:
        self.text(option, "text", at, 75)
        self.string(option, "value", at, 150)

    def confirm(self, element: Json, at: str) -> None:
        confirm = element.get("confirm")
        if isinstance(confirm, dict):
            at = f"{at}/confirm"
            self.text(confirm, "title", at, 100, plain=True)
            self.text(confirm, "text", at, 300)
            self.text(confirm, "confirm", at, 30, plain=True)
            self.text(confirm, "deny", at, 30, plain=True)

    def context_element(self, element: Json, at: str) -> None:
        if element.get("type") == "image":
            self.string(element, "alt_text", at, 2000)
        elif element.get("type") in ("mrkdwn", "plain_text"):
            self.string(element, "text", at, 3000)
        else:
            self.say(f"{at}/type", f"unsupported type: {element.get('type')}")

    def context_action(self, element: Json, at: str) -> None:
        self.action_id(element, at)
        match element.get("type"):
            case "feedback_buttons":
                for name in ("positive_button", "negative_button"):
                    button = element.get(name)
                    if not isinstance(button, dict):
                        self.say(at, f"missing required field: {name}")
                        continue
                    self.text(button, "text", f"{at}/{name}", 75, plain=True)
                    self.string(button, "value", f"{at}/{name}", 2000)
                    self.string(button, "accessibility_label", f"{at}/{name}", 75, needed=False)
            case "icon_button":
                self.string(element, "icon", at, 75)
                self.text(element, "text", at, 75, plain=True)
                self.string(element, "value", at, 2000, needed=False)
            case kind:
                self.say(f"{at}/type", f"unsupported type: {kind}")

    # ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def block(self, block: Json, at: str) -> None:
        self.string(block, "block_id", at, 255, needed=False)
        check = _BLOCKS.get(str(block.get("type")))
        if check is None:
            self.say(f"{at}/type", f"unsupported type: {block.get('type')}")
        else:
            check(self, block, at)

    def section(self, block: Json, at: str) -> None:
        self.text(block, "text", at, 3000, needed="fields" not in block)
        if "fields" in block:
            self.several(block, "fields", at, 10, lambda each, where: self.string(each, "text", where, 2000))
        accessory = block.get("accessory")
        if isinstance(accessory, dict):
            self.element(accessory, f"{at}/accessory")

    def header(self, block: Json, at: str) -> None:
        self.text(block, "text", at, 150, plain=True)

    def context(self, block: Json, at: str) -> None:
        self.several(block, "elements", at, 10, self.context_element)

    def actions(self, block: Json, at: str) -> None:
        self.several(block, "elements", at, 25, self.element)

    def context_actions(self, block: Json, at: str) -> None:
        self.several(block, "elements", at, 5, self.context_action)

    def image(self, block: Json, at: str) -> None:
        self.string(block, "alt_text", at, 2000)
        self.text(block, "title", at, 2000, plain=True, needed=False)
        self.string(block, "image_url", at, 3000, needed="slack_file" not in block)

    def input(self, block: Json, at: str) -> None:
        self.text(block, "label", at, 2000, plain=True)
        self.text(block, "hint", at, 2000, plain=True, needed=False)
        element = block.get("element")
        if isinstance(element, dict):
            self.element(element, f"{at}/element")
        else:
            self.say(at, "missing required field: element")

    def rich_text(self, block: Json, at: str) -> None:
        if not isinstance(block.get("elements"), list):
            self.say(at, "missing required field: elements")

    def markdown(self, block: Json, at: str) -> None:
        self.string(block, "text", at, 10**9)

    def table(self, block: Json, at: str) -> None:
        rows = block.get("rows")
        if not isinstance(rows, list) or not rows:
            self.say(at, "missing required field: rows")
            return
        if len(rows) > 100:
            self.say(f"{at}/rows", "no more than 100 items allowed")
        for number, row in enumerate(rows):
            if not isinstance(row, list) or len(row) > 20:
                self.say(f"{at}/rows/{number}", "no more than 20 items allowed")
                continue
            for place, cell in enumerate(row):
                if not isinstance(cell, dict) or cell.get("type") not in ("raw_text", "raw_number", "rich_text"):
                    self.say(f"{at}/rows/{number}/{place}", "must be a table cell")

    def card(self, block: Json, at: str) -> None:
        self.string(block, "task_id", at, 255)
        self.string(block, "title", at, 256)
        self.choice(block, "status", at, CARD_STATES)

    def plan(self, block: Json, at: str) -> None:
        self.string(block, "title", at, 256)
        self.several(block, "tasks", at, 50, self.card)

    def nothing(self, block: Json, at: str) -> None:
        """A block without anything to check."""


_BLOCKS: dict[str, Callable[[_Checker, Json, str], None]] = {
    "actions": _Checker.actions,
    "context": _Checker.context,
    "context_actions": _Checker.context_actions,
    "divider": _Checker.nothing,
    "header": _Checker.header,
    "image": _Checker.image,
    "input": _Checker.input,
    "markdown": _Checker.markdown,
    "plan": _Checker.plan,
    "rich_text": _Checker.rich_text,
    "section": _Checker.section,
    "table": _Checker.table,
    "task_card": _Checker.card,
}


def check_blocks(blocks: Any, *, view: bool = False) -> list[Json]:
    """The blocks of a message (or view), or a refusal: invalid_blocks, msg_blocks_too_long, msg_too_long."""
    if isinstance(blocks, str):
        try:
            blocks = json.loads(blocks)
        except ValueError:
            raise Refused("invalid_blocks_format") from None
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise Refused("invalid_blocks_format")
    checker = _Checker()
    most = VIEW_BLOCKS if view else MESSAGE_BLOCKS
    if len(blocks) > most:
        checker.say("/blocks", f"no more than {most} items allowed")
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    if len(ids) != len(set(map(str, ids))):
        checker.say("/blocks", "`block_id` values must be unique")
    for number, block in enumerate(blocks):
        if view and block.get("type") in ONLY_MESSAGES:
            checker.say(f"/blocks/{number}/type", f"unsupported type: {block.get('type')}")
        else:
            checker.action_ids.clear()
            checker.block(block, f"/blocks/{number}")
    if checker.wrong:
        raise Refused("invalid_blocks", *checker.wrong, errors=checker.wrong)
    if sum(len(block["text"]) for block in blocks if block["type"] == "markdown") > MARKDOWN_TOTAL:
        raise Refused("msg_too_long")
    tables = [block for block in blocks if block["type"] == "table"]
    if sum(len(text) for text in texts(tables)) > 10_000 or (
        not view and sum(len(text) for text in texts(blocks)) > ALL_TEXT
    ):
        raise Refused("msg_blocks_too_long")
    return blocks


def stored(blocks: list[Json]) -> list[Json]:
    """The blocks as Slack keeps them: Markdown becomes rich text without the id that it had."""
    return [rich(block["text"]) if block["type"] == "markdown" else block for block in blocks]


def rich(text: str) -> Json:
    """Text as a rich text block."""
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [section]}


def check_metadata(metadata: Any) -> Json | None:
    """A message's metadata, or a refusal: its payload is an object, the whole at most 16 kB."""
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except ValueError:
            raise Refused("invalid_metadata_format") from None
    if metadata is None:
        return None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("event_type"), str) or not metadata["event_type"]:
        raise Refused("invalid_metadata_format")
    if not isinstance(metadata.get("event_payload"), dict):
        raise Refused("invalid_metadata_format")
    if len(json.dumps(metadata)) > METADATA_BYTES:
        raise Refused("metadata_too_large")
    return metadata


def check_view(view: Any) -> Json:
    """A modal, or a refusal."""
    if isinstance(view, str):
        try:
            view = json.loads(view)
        except ValueError:
            raise Refused("invalid_arguments", "view is not JSON") from None
    if not isinstance(view, dict):
        raise Refused("invalid_arguments", "missing required field: view")
    if len(json.dumps(view)) > VIEW_BYTES:
        raise Refused("view_too_large")
    checker = _Checker()
    if view.get("type") != "modal":
        checker.say("/view/type", "must be modal")
    checker.text(view, "title", "/view", 24, plain=True)
    has_input = any(isinstance(block, dict) and block.get("type") == "input" for block in view.get("blocks", ()))
    checker.text(view, "submit", "/view", 24, plain=True, needed=has_input)
    checker.text(view, "close", "/view", 24, plain=True, needed=False)
    checker.string(view, "private_metadata", "/view", 3000, needed=False)
    checker.string(view, "callback_id", "/view", 255, needed=False)
    if not view.get("blocks"):
        checker.say("/view/blocks", "must contain at least 1 item")
    if checker.wrong:
        raise Refused("invalid_arguments", *checker.wrong)
    try:
        check_blocks(view["blocks"], view=True)
    except Refused as refused:
        raise Refused("invalid_arguments", *refused.extra.get("errors", [refused.error])) from None
    return view
