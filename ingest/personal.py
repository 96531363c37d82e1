"""What identifies persons and machines in a write-up → asterisks. Secrets and e-mail addresses are `kb.mask`'s.

Only what words around it tell to be a name, a telephone number or an address is replaced: a log is full of numbers
with dots, and code of words with an at sign.
"""

from __future__ import annotations

import re
from dataclasses import replace

from trainmedic.ingest.document import Discussion, Document

HIDDEN = "***"
_LATIN = r"[A-Z][a-z]+(?:[ -][A-Z][a-z]+){0,2}"
_HAN = r"[\u4e00-\u9fff]{2,4}"
_NAME = re.compile(
    rf"((?:作者|报告人|负责人|联系人|提交人|值班人?|经办人|[Aa]uthors?|[Rr]eporter|[Oo]wner|[Aa]ssignee|[Cc]ontact|[Oo]n-?call)\s*[:：]\s*)"
    rf"(?:{_LATIN}|{_HAN}(?![\u4e00-\u9fff]))"
    rf"|((?:[Rr]eported|[Ww]ritten|[Ff]ound|[Ff]ixed|[Rr]eviewed) by |[Tt]hanks to |感谢|同事)"
    rf"(?:{_LATIN}(?![\w.]))"
)
_PATH = re.compile(r"(?<![\w:/.])((?:/[\w.-]+)*/(?:home|Users|users)/|[A-Za-z]:\\Users\\)(?![<${*])[^/\\\s:\"'`,;)]+")
_PROMPT = re.compile(r"(?<![\w.])[A-Za-z_][\w-]*@[A-Za-z][\w.-]*(?=:[~/]|[ \]][^\n]{0,60}[#$] )")
_PHONE = re.compile(
    r"(?<![\w.+])(?:\+\d{1,3}[ -]?)(?:\d[ -]?){7,12}\d(?!\w)|((?:电话|手机|微信|[Tt]el|[Pp]hone)\D{0,4})1[3-9]\d{9}"
)
_ADDRESS = re.compile(
    r"((?:\b(?:ip|host|addr|address|node|server|master|endpoint)\w*\W{1,3}|地址|机器|节点|://|@)\s?)"
    r"(?!127\.0\.0\.1|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"
    r"|()(?<![\w.=-])(?!127\.0\.0\.1|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?=:\d{2,5}\b)",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"(?<![\w@.-])[A-Za-z0-9][\w-]*(?:\.[\w-]+)*\.(?:corp|internal|intranet|intra|lan|local|localdomain|svc)(?:\.[a-z]{2,6}){0,2}(?![\w.])"
)
_HANDLE = re.compile(r"(?<![\w/`.@*])@[A-Za-z][\w-]{1,38}(?![\w.(/`*-])")


def without_persons(document: Document) -> Document:
    """The write-up without names, handles, telephone numbers, user folders, hosts and addresses of machines."""
    blocks = tuple(replace(block, text=hidden(block.text, code=block.kind == "code")) for block in document.blocks)
    return replace(document, title=hidden(document.title), blocks=blocks)


def discussion_without_persons(discussion: Discussion) -> Discussion:
    """The same of a discussion, whose messages are Markdown."""
    messages = tuple(replace(message, text=_hidden_markdown(message.text)) for message in discussion.messages)
    return replace(discussion, title=hidden(discussion.title), messages=messages)


def hidden(text: str, *, code: bool = False) -> str:
    for pattern in (_NAME, _PATH, _PROMPT, _PHONE, _ADDRESS, _HOST):
        text = pattern.sub(_keep_lead, text)
    # In code an at sign is a decorator or an operator.
    return text if code else _HANDLE.sub(f"@{HIDDEN}", text)


def _hidden_markdown(text: str) -> str:
    parts = text.split("```")
    return "```".join(hidden(part, code=number % 2 == 1) for number, part in enumerate(parts))


def _keep_lead(match: re.Match[str]) -> str:
    """The words that tell what it is remain."""
    return next((group for group in match.groups() if group), "") + HIDDEN
