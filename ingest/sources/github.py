"""A repository of GitHub (OWNER/NAME, or its address) over the API: issues with their comments by REST, discussions by
GraphQL; what changed since the last run. The token is read from GITHUB_TOKEN or GH_TOKEN; public repositories can be
read without one, slowly. Files of issues are read as `folder` reads them.

https://docs.github.com/rest/issues/issues, https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_attempt

from trainmedic.ingest.items import Checkpoint, Failure, Gone, Item, Options
from trainmedic.ingest.sources import folder
from trainmedic.ingest.sources.records import discussions
from trainmedic.kb.lazy import regex
from trainmedic.kb.retry import backoff, last_outcome, retry_after_s

API = "https://api.github.com"
PAGE = 100
ATTEMPTS = 4
PATIENCE_S = 15 * 60.0
"""The longest wait for a rate limit to end; beyond it the run stops, and the next one goes on."""
_DELETED = (404, 410)
_LIMITED = (403, 429)
_FAILING = (500, 502, 503, 504)
_DISCUSSIONS = """query($owner: String!, $name: String!, $after: String) {
  repository(owner: $owner, name: $name) { discussions(first: 30, after: $after,
      orderBy: {field: UPDATED_AT, direction: DESC}) {
    pageInfo { hasNextPage endCursor }
    nodes { number title body url closed stateReason updatedAt author { login } answer { id body author { login }
        authorAssociation }
      comments(first: 50) { nodes { body isAnswer authorAssociation author { login }
        replies(first: 20) { nodes { body isAnswer authorAssociation author { login } } } } } } } } }"""


_REPOSITORY = regex(r"(?:https://github\.com/)?([\w.-]+/[\w.-]+?)(?:\.git)?(?:/(?:issues|discussions))?/?$")


def recognises(location: str) -> bool:
    """An address only: ``posts/2026`` is more likely a folder that is missing than a repository."""
    return location.startswith("https://") and _REPOSITORY.match(location) is not None


def read(options: Options) -> Iterator[Item]:
    named = _REPOSITORY.match(options.location)
    if named is None or Path(options.location).exists():
        yield from folder.read(options)
        return
    with GitHub(os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or "") as github:
        yield from github.read(named[1], options.since)


class Stopped(Exception):
    """Nothing more can be read in this run; ``args[0]`` says why."""


class GitHub:
    """A client of the API. ``transport``, ``sleep`` and ``now`` (seconds since the epoch) are there for tests."""

    def __init__(
        self,
        token: str = "",
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            base_url=API, headers=headers, timeout=60, follow_redirects=True, transport=transport
        )
        self._with_token = bool(token)
        self._sleep = sleep
        self._now = now

    def __enter__(self) -> GitHub:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def read(self, repository: str, since: str = "") -> Iterator[Item]:
        """The issues, then the discussions (they need a token), that changed since a checkpoint; oldest change first,
        so a run that ends early goes on where it was."""
        state = _state(since)
        try:
            yield from self._issues(repository, state)
            if self._with_token:
                yield from self._discussions(repository, state)
        except Stopped as stop:
            yield Failure(origin=repository, reason=str(stop))

    def _issues(self, repository: str, state: dict[str, str]) -> Iterator[Item]:
        address = _changed_since(repository, state.get("issues", ""))
        etag = state.get("etag", "")
        while address:
            response = self._get(address, {"If-None-Match": etag} if etag else {})
            if response.status_code == httpx.codes.NOT_MODIFIED:
                return
            if response.status_code in _DELETED:
                raise Stopped("no such repository, or the token may not read it")
            page = _json(response)
            for issue in page if isinstance(page, list) else ():
                yield from self._issue(issue)
            if isinstance(page, list) and page:
                state["issues"] = str(page[-1].get("updated_at") or state.get("issues", ""))
            address, etag = response.links.get("next", {}).get("url", ""), ""
            yield Checkpoint(value=json.dumps(state, sort_keys=True))
        # The answer to the next run's first request, so that it costs nothing if nothing changes.
        state["etag"] = self._get(_changed_since(repository, state.get("issues", ""))).headers.get("etag", "")
        yield Checkpoint(value=json.dumps(state, sort_keys=True))

    def _issue(self, issue: Mapping[str, Any]) -> Iterator[Item]:
        if "pull_request" in issue:
            return
        origin = str(issue.get("html_url") or issue.get("number"))
        comments: list[object] = []
        address = str(issue.get("comments_url") or "") if issue.get("comments") else ""
        while address:
            response = self._get(f"{address}?per_page={PAGE}" if "?" not in address else address)
            if response.status_code in _DELETED:
                yield Gone(key=origin)
                return
            page = _json(response)
            comments += page if isinstance(page, list) else []
            address = response.links.get("next", {}).get("url", "")
        yield from discussions({**issue, "comments": comments}, origin)

    def _discussions(self, repository: str, state: dict[str, str]) -> Iterator[Item]:
        """Newest first, as GraphQL lists them, down to what the last run has seen."""
        owner, name = repository.split("/", 1)
        seen, newest, after = state.get("discussions", ""), "", None
        while True:
            variables = {"owner": owner, "name": name, "after": after}
            response = self._send("POST", "/graphql", json={"query": _DISCUSSIONS, "variables": variables})
            body = _json(response)
            data = body.get("data") if isinstance(body, Mapping) else None
            found = (data or {}).get("repository") or {}
            listed = found.get("discussions") or {}
            for node in listed.get("nodes") or ():
                updated = str(node.get("updatedAt") or "")
                newest = max(newest, updated)
                if seen and updated <= seen:
                    break
                yield from discussions(node, str(node.get("url") or node.get("number")))
            else:
                if (listed.get("pageInfo") or {}).get("hasNextPage"):
                    after = listed["pageInfo"]["endCursor"]
                    continue
            state["discussions"] = max(seen, newest)
            yield Checkpoint(value=json.dumps(state, sort_keys=True))
            return

    def _get(self, address: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return self._send("GET", address, headers=dict(headers or {}))

    def _send(self, method: str, address: str, **options: Any) -> httpx.Response:
        """One request, again after a failure of the network or the server, and when a rate limit ends."""
        attempts = Retrying(
            sleep=self._sleep,
            wait=backoff(1.0, 30.0),
            stop=stop_after_attempt(ATTEMPTS),
            retry=retry_if_exception_type(httpx.TransportError)
            | retry_if_result(lambda response: response.status_code in _FAILING),
            retry_error_callback=last_outcome,
        )
        while True:
            try:
                response: httpx.Response = attempts(self._client.request, method, address, **options)
            except httpx.TransportError as error:
                raise Stopped(f"the API cannot be reached ({type(error).__name__})") from error
            if response.status_code not in _LIMITED:
                break
            self._wait(response)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            raise Stopped("the token is refused (GITHUB_TOKEN or GH_TOKEN)")
        if response.is_error and response.status_code not in _DELETED:
            raise Stopped(f"the API answers {response.status_code}")
        return response

    def _wait(self, response: httpx.Response) -> None:
        """Wait for the end of a rate limit. Raises `Stopped` if that is too far away, or if it is not a rate limit."""
        seconds = retry_after_s(response.headers)
        reset = response.headers.get("x-ratelimit-reset", "")
        if not seconds and response.headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
            seconds = max(1.0, float(reset) - self._now())
        if not seconds:
            raise Stopped(f"the API refuses ({response.status_code}); the token may lack the right to read")
        if seconds > PATIENCE_S:
            until = datetime.fromtimestamp(self._now() + seconds, UTC)
            raise Stopped(f"the rate limit is used up until {until:%H:%M} UTC; run again then, it goes on from here")
        self._sleep(seconds)


def _changed_since(repository: str, since: str) -> str:
    address = f"/repos/{repository}/issues?state=all&sort=updated&direction=asc&per_page={PAGE}"
    return f"{address}&since={since}" if since else address


def _state(since: str) -> dict[str, str]:
    try:
        state = json.loads(since) if since else {}
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in state.items()} if isinstance(state, dict) else {}


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise Stopped("the API answers no JSON") from error
