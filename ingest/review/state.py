"""The review state of a draft (``reviews/<id>.json`` below the folder of the drafts), and which decision may follow
which.

draft → reviewed → published; a draft or reviewed page may be rejected. An edit begins again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from trainmedic.ingest.drafts.store import write_private
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.serialization import from_json, to_json

FOLDER = "reviews"
State = Literal["draft", "reviewed", "published", "rejected"]
STATES: tuple[State, ...] = get_args(State)
Action = Literal["edit", "approve", "reject", "merge", "publish"]
ALLOWED: Mapping[Action, tuple[State, ...]] = {
    "edit": STATES,
    "approve": ("draft",),
    "reject": ("draft", "reviewed"),
    "merge": ("draft", "reviewed"),
    "publish": ("reviewed",),
}
"""The states in which an action is possible."""
_RESULT: Mapping[Action, State] = {
    "edit": "draft",
    "approve": "reviewed",
    "reject": "rejected",
    "merge": "published",
    "publish": "published",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The last decision about a draft. Who made it is not stored.

    ``at`` is an ISO 8601 time, ``reason`` says why it was rejected, ``page_digest`` is that of the draft's page at that
    time. ``published_as`` is the path of the published page, ``merged_into`` the case whose page took it up.
    """

    state: State = "draft"
    at: str = ""
    reason: str = ""
    page_digest: str = ""
    published_as: str = ""
    merged_into: str = ""


def load_review(folder: Path, draft_id: str) -> Review:
    """The last decision about a draft; that of a new draft if there is none or it cannot be read."""
    try:
        return from_json(Review, (folder / FOLDER / f"{draft_id}.json").read_bytes())
    except (OSError, ValueError):
        return Review()


def write_review(folder: Path, draft_id: str, review: Review) -> None:
    write_private(folder / FOLDER / f"{draft_id}.json", to_json(review, indent=1) + "\n")


def current(review: Review, page_digest: str) -> Review:
    """The review as it applies to the page: a decision about another text of it has lapsed, unless it was published."""
    if review.state in ("reviewed", "rejected") and review.page_digest != page_digest:
        return replace(review, state="draft", reason="")
    return review


def changed_since(review: Review, page_digest: str) -> bool:
    """Whether the draft's page is no longer the one that was published."""
    return review.state == "published" and review.page_digest != page_digest


def decided(
    review: Review,
    action: Action,
    *,
    at: str,
    page_digest: str,
    reason: str = "",
    published_as: str = "",
    merged_into: str = "",
) -> Review:
    """The review after the action. Raises `InvalidRequest` if it is not possible in this state."""
    if review.state not in ALLOWED[action] and not (action == "approve" and changed_since(review, page_digest)):
        possible = " or ".join(ALLOWED[action])
        hint = "approve it first" if action == "publish" and review.state == "draft" else "edit it to begin again"
        raise InvalidRequest(f"cannot {action} a page that is {review.state}, only one that is {possible}", hint=hint)
    if action == "reject" and not reason.strip():
        raise InvalidRequest("a rejection needs a reason")
    return Review(
        state=_RESULT[action],
        at=at,
        reason=" ".join(reason.split()) if action == "reject" else "",
        page_digest=page_digest,
        published_as=published_as or review.published_as,
        merged_into=merged_into or review.merged_into,
    )
