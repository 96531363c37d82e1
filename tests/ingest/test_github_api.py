"""Reading a repository over the API: what changed, no more requests than needed, and rate limits."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest

from trainmedic.ingest.items import Checkpoint, Discussion, Failure, Gone, Item
from trainmedic.ingest.sources.github import GitHub

Answer = Callable[[httpx.Request], httpx.Response]


def issue(number: int, updated: str, comments: int = 0) -> dict[str, object]:
    base = f"https://api.github.com/repos/o/n/issues/{number}"
    return {
        "number": number,
        "title": f"Loss is nan {number}",
        "body": "It is nan.",
        "state": "closed",
        "user": {"login": "ann"},
        "html_url": f"https://github.com/o/n/issues/{number}",
        "comments": comments,
        "comments_url": f"{base}/comments",
        "updated_at": updated,
    }


class Tracker:
    """A repository on the far side of the API."""

    def __init__(self) -> None:
        self.issues = [issue(1, "2026-01-01T00:00:00Z", 1), issue(2, "2026-01-02T00:00:00Z")]
        self.requests: list[str] = []
        self.before: list[httpx.Response | Exception] = []
        self.deleted: set[int] = set()
        self.discussions: list[dict[str, object]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(f"{request.method} {request.url.path}?{request.url.query.decode()}")
        if self.before:
            first = self.before.pop(0)
            if isinstance(first, Exception):
                raise first
            return first
        if request.url.path == "/graphql":
            page = {"nodes": self.discussions, "pageInfo": {"hasNextPage": False}}
            return httpx.Response(200, json={"data": {"repository": {"discussions": page}}})
        if request.url.path == "/repos/o/n/issues":
            return self.listed(request)
        if request.url.path.endswith("/comments"):
            number = int(request.url.path.split("/")[-2])
            if number in self.deleted:
                return httpx.Response(410)
            comment = {"body": "Use bf16.", "user": {"login": "bob"}, "author_association": "MEMBER"}
            return httpx.Response(200, json=[comment])
        return httpx.Response(404)

    def listed(self, request: httpx.Request) -> httpx.Response:
        since, page = request.url.params.get("since", ""), int(request.url.params.get("page", "1"))
        found = [item for item in self.issues if str(item["updated_at"]) >= since]
        etag = f'"{since}-{json.dumps(found).__hash__()}"'
        if request.headers.get("if-none-match") == etag:
            return httpx.Response(304)
        headers = {"etag": etag}
        if page < len(found):
            headers["link"] = f'<{request.url.copy_set_param("page", str(page + 1))}>; rel="next"'
        return httpx.Response(200, json=found[page - 1 : page], headers=headers)


def read(tracker: Answer, since: str = "", token: str = "", slept: list[float] | None = None) -> list[Item]:
    sleep = (slept if slept is not None else []).append
    with GitHub(token, transport=httpx.MockTransport(tracker), sleep=sleep, now=lambda: 1000.0) as github:
        return list(github.read("o/n", since))


def last(items: list[Item]) -> str:
    return [item.value for item in items if isinstance(item, Checkpoint)][-1]


def test_nothing_new_costs_one_request_and_what_changed_is_read_alone() -> None:
    tracker = Tracker()
    mark = last(read(tracker))
    tracker.requests.clear()
    assert (read(tracker, mark), len(tracker.requests)) == ([], 1)
    tracker.issues.append(issue(3, "2026-02-01T00:00:00Z"))
    found = [item.key for item in read(tracker, mark) if isinstance(item, Discussion)]
    assert found == ["https://github.com/o/n/issues/2", "https://github.com/o/n/issues/3"]


def test_a_run_that_ends_early_goes_on_where_it_was() -> None:
    tracker = Tracker()
    items = read(tracker)
    first, _, second, *_ = items
    assert isinstance(first, Discussion)
    assert [message.role for message in first.messages] == ["reporter", "maintainer"]
    assert isinstance(second, Discussion)
    assert sum(isinstance(item, Checkpoint) for item in items) == 3, "one after each page"
    mark = next(item.value for item in items if isinstance(item, Checkpoint))
    tracker.issues[0] = issue(1, "2025-01-01T00:00:00Z")
    assert [item.key[-1] for item in read(tracker, mark) if isinstance(item, Discussion)] == ["2"]


def test_an_issue_deleted_meanwhile_is_gone_and_pull_requests_are_left_out() -> None:
    tracker = Tracker()
    tracker.deleted.add(1)
    tracker.issues.append({**issue(4, "2026-03-01T00:00:00Z"), "pull_request": {}})
    items = read(tracker)
    assert [item.key for item in items if isinstance(item, Gone)] == ["https://github.com/o/n/issues/1"]
    assert [item.key[-1] for item in items if isinstance(item, Discussion)] == ["2"]


def test_discussions_need_a_token_and_end_at_what_the_last_run_saw() -> None:
    tracker = Tracker()
    node = {"number": 9, "title": "How", "body": "?", "url": "https://github.com/o/n/discussions/9", "comments": {}}
    tracker.discussions = [{**node, "updatedAt": "2026-02-01"}]
    assert all("graphql" not in request for request in tracker.requests)
    items = read(tracker, token="t")
    assert [item.key for item in items if isinstance(item, Discussion)][-1].endswith("discussions/9")
    mark = last(items)
    tracker.issues.append(issue(5, "2026-04-01T00:00:00Z"))
    assert not any("discussions" in item.key for item in read(tracker, mark, "t") if isinstance(item, Discussion))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "7"}, 7.0), ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1060"}, 60.0)],
)
def test_a_short_rate_limit_is_waited_for(headers: dict[str, str], seconds: float) -> None:
    tracker, slept = Tracker(), list[float]()
    tracker.before = [httpx.Response(403, headers=headers)]
    assert len([item for item in read(tracker, slept=slept) if isinstance(item, Discussion)]) == 2
    assert slept == [seconds]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            httpx.Response(429, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9000"}),
            "the rate limit is used up until 02:30 UTC; run again then, it goes on from here",
        ),
        (httpx.Response(403), "the API refuses (403); the token may lack the right to read"),
        (httpx.Response(401), "the token is refused (GITHUB_TOKEN or GH_TOKEN)"),
        (httpx.Response(404), "no such repository, or the token may not read it"),
        (httpx.Response(418), "the API answers 418"),
        (httpx.Response(200, text="<html>"), "the API answers no JSON"),
    ],
)
def test_what_ends_a_run_is_said(answer: httpx.Response, reason: str) -> None:
    tracker = Tracker()
    tracker.before = [answer]
    assert read(tracker) == [Failure(origin="o/n", reason=reason)]


def test_a_network_that_fails_is_tried_again_and_then_named() -> None:
    tracker = Tracker()
    tracker.before = [httpx.ConnectError("no"), httpx.Response(502)]
    assert len([item for item in read(tracker) if isinstance(item, Discussion)]) == 2
    tracker.before = [httpx.ConnectError("no")] * 4
    assert read(tracker) == [Failure(origin="o/n", reason="the API cannot be reached (ConnectError)")]
