"""The reviewer's desk: the queue, one draft with the evidence for and against it, and the decisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from trainmedic.ingest.authoring.page_lint import lint_case
from trainmedic.ingest.authoring.rule_lint import lint_rule
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.store import digest_of, load_drafts, page_path, page_text, write_page
from trainmedic.ingest.review.checkout import commit_page, write_text
from trainmedic.ingest.review.duplicates import Duplicate, duplicates, incident_of_case, incident_of_draft
from trainmedic.ingest.review.page_text import case_of, merged_text, published_text
from trainmedic.ingest.review.state import (
    Action,
    Review,
    State,
    changed_since,
    current,
    decided,
    load_review,
    write_review,
)
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.pages.case import CAUSES, CaseSet
from trainmedic.kb.pages.page import PageError, discover, read_page, suggestion
from trainmedic.kb.pages.rule import read_checks
from trainmedic.kb.parse.pipeline import parse

PAGES = "causes"
"""The folder of published pages below a team's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """One line of the queue. ``changed``: a published page is older than its draft; ``problems`` keep it back."""

    id: str
    title: str
    source: str
    state: State
    source_state: str
    marks: int
    problems: int
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One draft with its page, which is the file ``path``. ``problems`` keep the page from being published."""

    draft: Draft
    review: Review
    changed: bool
    page: str
    path: str
    problems: tuple[str, ...]
    duplicates: tuple[Duplicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A page that was written. ``commit`` is empty outside a git checkout, ``problem`` says why git did not take it."""

    id: str
    path: str
    commit: str = ""
    problem: str = ""


class Desk:
    """The drafts of a folder, held against published pages. ``team`` is the folder that pages are published to."""

    def __init__(self, folder: Path, cases: CaseSet, words: Vocabulary, team: Path | None = None) -> None:
        self._folder = folder
        self._cases = cases
        self._words = words
        self._team = team

    def queue(self) -> tuple[QueueItem, ...]:
        return tuple(self._item(draft) for draft in load_drafts(self._folder))

    def entry(self, draft_id: str) -> Entry:
        """Raises `NotFound`."""
        draft = self._draft(draft_id)
        text = page_text(self._folder, draft)
        review = load_review(self._folder, draft.id)
        return Entry(
            draft=draft,
            review=current(review, digest_of(text)),
            changed=changed_since(review, digest_of(text)),
            page=text,
            path=str(page_path(self._folder, draft) or ""),
            problems=self._problems(text),
            duplicates=self.duplicates([draft.id])[draft.id],
        )

    def duplicates(self, draft_ids: Collection[str]) -> Mapping[str, tuple[Duplicate, ...]]:
        """Of each of these drafts the other drafts and published cases that are probably the same."""
        drafts = {draft.id: draft for draft in load_drafts(self._folder)}
        incidents = {draft.id: incident_of_draft(draft) for draft in drafts.values()}
        cases = {
            language: [incident_of_case(case, language) for case in self._cases.published if case.level == "case"]
            for language in {drafts[draft_id].language for draft_id in draft_ids}
        }
        found = {}
        for draft_id in draft_ids:
            review = load_review(self._folder, draft_id)
            published = {Path(review.published_as).stem, review.merged_into}
            others = (case for case in cases[drafts[draft_id].language] if case.id not in published)
            found[draft_id] = duplicates(incidents[draft_id], (*incidents.values(), *others))
        return found

    def edit(self, draft_id: str, text: str, at: datetime) -> tuple[str, ...]:
        """Replace the page; its problems are returned, the text is stored in any case."""
        draft = self._draft(draft_id)
        text = text.replace("\r\n", "\n")
        text = text if text.endswith("\n") else f"{text}\n"
        write_page(self._folder, draft, text)
        self._decide(draft, "edit", at)
        return self._problems(text)

    def approve(self, draft_id: str, at: datetime) -> Review:
        """Raises `InvalidRequest` if the page has problems."""
        draft = self._draft(draft_id)
        self._require_publishable(page_text(self._folder, draft))
        return self._decide(draft, "approve", at)

    def reject(self, draft_id: str, reason: str, at: datetime) -> Review:
        return self._decide(self._draft(draft_id), "reject", at, reason=reason)

    def merge(self, draft_id: str, case_id: str, at: datetime) -> Publication:
        """Add the draft's symptoms and sources to a page of the team."""
        draft = self._draft(draft_id)
        if self._cases.get(case_id) is None:
            raise NotFound(f"no case {case_id!r}{suggestion(case_id, {case.id for case in self._cases.cases})}")
        path = self._path_of(case_id)
        if path is None:
            raise InvalidRequest(
                f"{case_id} is not a page of yours", hint="list it under `related` on the draft's page"
            )
        self._decided(draft, "merge", at)
        addition, _ = case_of(page_text(self._folder, draft))
        publication = self._write(path, case_id, merged_text(path.read_text(encoding="utf-8"), addition))
        self._decide(draft, "merge", at, merged_into=case_id, published_as=publication.path)
        return publication

    def publish(self, draft_id: str, at: datetime, folder: Path | None = None) -> Publication:
        """Write the page below ``folder`` (else the team's folder) and commit it if that is a git checkout."""
        draft = self._draft(draft_id)
        team = folder or self._team
        if team is None:
            raise InvalidRequest("no folder to publish to", hint="name one with --folder, or set TRAINMEDIC_KB_PATHS")
        self._decided(draft, "publish", at)
        text = page_text(self._folder, draft)
        self._require_publishable(text)
        page = published_text(text, at.date())
        case, _ = case_of(page)
        path = (team / PAGES / f"{case.id}.md").resolve()
        earlier = load_review(self._folder, draft.id).published_as
        other = self._cases.get(case.id)
        if str(path) != earlier and (path.exists() or other is not None):
            raise InvalidRequest(f"there is a page {case.id!r} already", hint="merge, or give the draft another id")
        publication = self._write(path, case.id, page)
        self._decide(draft, "publish", at, published_as=publication.path)
        return publication

    def _draft(self, draft_id: str) -> Draft:
        """By the id, or by its last part."""
        drafts = load_drafts(self._folder)
        matches = [draft for draft in drafts if draft.id == draft_id or draft.id.endswith(f"-{draft_id}")]
        if len(matches) != 1:
            known = {draft.id for draft in drafts}
            raise NotFound(f"no draft {draft_id!r}{suggestion(draft_id, known)}", hint="trainmedic review list")
        return matches[0]

    def _item(self, draft: Draft) -> QueueItem:
        text = page_text(self._folder, draft)
        review = load_review(self._folder, draft.id)
        return QueueItem(
            id=draft.id,
            title=draft.title,
            source=draft.url or draft.origin,
            state=current(review, digest_of(text)).state,
            source_state=draft.source_state,
            marks=len(draft.marks),
            problems=len(self._problems(text)),
            changed=changed_since(review, digest_of(text)),
        )

    def _problems(self, text: str) -> tuple[str, ...]:
        """What keeps the page from being published."""
        if not text:
            return ("the draft's page was removed",)
        try:
            published = published_text(text, datetime.max.date())
            case, page = case_of(published)
            checks, _ = read_checks(Path(f"{case.id}.md"), *read_page(published, f"{case.id}.md"))
        except PageError as error:
            return (f"line {error.problem.line}: {error.problem.message}",)
        others = tuple(other for other in self._cases.cases if other.id != case.id)
        known = CaseSet(cases=(*others, case), pages={case.id: page})
        examples = (problem for rule in checks.rules for problem in lint_rule(rule, parse))
        found = (*lint_case(case, known, self._words, profile="team"), *examples)
        return tuple(dict.fromkeys(problem.message for problem in found))

    def _require_publishable(self, text: str) -> None:
        if problems := self._problems(text):
            raise InvalidRequest("the page is not ready: " + "; ".join(problems))

    def _decided(self, draft: Draft, action: Action, at: datetime, **outcome: str) -> Review:
        """The review after the action. Raises `InvalidRequest` if it is not possible."""
        digest = digest_of(page_text(self._folder, draft))
        review = current(load_review(self._folder, draft.id), digest)
        return decided(review, action, at=at.isoformat(timespec="seconds"), page_digest=digest, **outcome)

    def _decide(self, draft: Draft, action: Action, at: datetime, **outcome: str) -> Review:
        review = self._decided(draft, action, at, **outcome)
        write_review(self._folder, draft.id, review)
        return review

    def _path_of(self, case_id: str) -> Path | None:
        """The file of a team's page; None for a built-in case."""
        if self._team is None or any(path.stem == case_id for path, _ in discover(CAUSES)):
            return None
        return next((path for path, _ in discover(self._team) if path.stem == case_id), None)

    def _write(self, path: Path, page_id: str, text: str) -> Publication:
        case, page = case_of(text)
        write_text(path, text)
        self._cases = replace(
            self._cases,
            cases=(*(other for other in self._cases.cases if other.id != page_id), case),
            pages={**self._cases.pages, page_id: page},
        )
        commit, problem = commit_page(path, case.title.en)
        return Publication(id=page_id, path=str(path), commit=commit, problem=problem)
