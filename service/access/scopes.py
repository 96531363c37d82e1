"""Scopes required by each route: the one table that decides who may do what.

tests/service/test_access.py walks all routes and fails for one that has no entry here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, TypeAlias

from starlette.routing import compile_path

Requirement: TypeAlias = Literal["probe", "open", "signed", "pages", "read", "ask", "admin"]
"""``probe``: open, and not counted. ``signed``: a chat platform's signature, checked by its channel. ``pages``: the
pages decide (`ui.chat.app`)."""

REQUIREMENTS: tuple[tuple[str, str, Requirement], ...] = (
    ("GET", "/livez", "probe"),
    ("GET", "/readyz", "probe"),
    ("GET", "/version", "open"),
    ("GET", "/llms.txt", "open"),
    ("GET", "/metrics", "read"),
    ("GET", "/openapi.json", "read"),
    ("POST", "/v1/ask", "ask"),
    ("POST", "/v1/chat/completions", "ask"),
    ("POST", "/v1/check", "ask"),
    ("POST", "/v1/effective", "ask"),
    ("POST", "/v1/audit", "ask"),
    ("POST", "/v1/diff", "ask"),
    ("POST", "/v1/messages/explain", "ask"),
    ("POST", "/v1/feedback", "ask"),
    ("POST", "/v1/search", "read"),
    ("GET", "/v1/answers/{answer_id}", "read"),
    ("GET", "/v1/conversations", "ask"),
    ("GET", "/v1/conversations/{conversation_id}", "ask"),
    ("DELETE", "/v1/conversations/{conversation_id}", "ask"),
    ("GET", "/v1/cases", "read"),
    ("GET", "/v1/cases/{case_id}", "read"),
    ("GET", "/v1/mechanisms", "read"),
    ("GET", "/v1/mechanisms/{mechanism_id}", "read"),
    ("GET", "/v1/rules", "read"),
    ("GET", "/v1/rules/{rule_id}", "read"),
    ("GET", "/v1/models", "read"),
    ("GET", "/v1/models/{model_id}", "read"),
    ("GET", "/v1/admin/index", "admin"),
    ("POST", "/v1/admin/reload", "admin"),
    ("*", "/mcp", "ask"),
    ("POST", "/slack/events", "signed"),
    ("POST", "/feishu/events", "signed"),
    ("POST", "/dingtalk/events", "signed"),
    ("*", "/{page:path}", "pages"),
)
"""Method, path and requirement; the first entry that fits decides. ``*`` is any method."""
API_PREFIXES = ("/v1/", "/mcp", "/metrics", "/openapi.json")
ADMIN_PREFIX = "/v1/admin"


def requirement(method: str, path: str) -> tuple[str, Requirement]:
    """The route's path as declared, and what it requires.

    A path of the API that is in no entry needs an API key, below `ADMIN_PREFIX` one of an administrator: whether it
    exists is no one else's business.
    """
    method = "GET" if method == "HEAD" else method
    exact = _exact().get((method, path)) or _exact().get(("*", path))
    if exact is not None:
        return path, exact
    for known, template, pattern, needed in _templates():
        if known in ("*", method) and pattern.match(path) and not (needed == "pages" and path.startswith(API_PREFIXES)):
            return template, needed
    return "", "admin" if path.startswith(ADMIN_PREFIX) else "read"


def methods_of(path: str) -> tuple[str, ...]:
    """The methods that are declared for a path; none for one that takes any, or that is unknown."""
    exact = {method for method, known in _exact() if known == path}
    return tuple(sorted((exact or {method for method, _, pattern, _ in _templates() if pattern.match(path)}) - {"*"}))


@cache
def _exact() -> dict[tuple[str, str], Requirement]:
    return {(method, path): needed for method, path, needed in REQUIREMENTS if "{" not in path}


@cache
def _templates() -> tuple[tuple[str, str, re.Pattern[str], Requirement], ...]:
    return tuple((method, path, compile_path(path)[0], needed) for method, path, needed in REQUIREMENTS if "{" in path)
