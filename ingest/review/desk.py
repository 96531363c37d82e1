"""What a reviewer sees and does: the queue, one draft with what speaks for and against it, and the decisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from trainmedic.ingest.authoring.case_lint import Profile, lint_case
from trainmedic.ingest.authoring.skeleton import rule_of_draft
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.store import digest_of, load_drafts, page_path
from trainmedic.ingest.review.checkout import Commit, commit_page, history
from trainmedic.ingest.review.duplicates import Duplicate, duplicates, incident_of_case, incident_of_draft
from trainmedic.ingest.review.page_text import case_of, merged_text, published_text, related_text
from trainmedic.ingest.review.state import Action, Review, State, changed_since, current, decided
from trainmedic.ingest.review.store import load_review, page_text, write_page, write_review, write_text
from trainmedic.kb.engine.mechanism import MechanismSet
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.page import Page
from trainmedic.kb.pages.case import CASES, CaseSet
from trainmedic.kb.pages.page import PageError, discover, suggestion

PAGES = "cases"
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
    """One draft with its page, which is the file ``path``. ``problems`` keep the page from being published; ``missing``
    is what a page of the built-in knowledge has beyond it."""

    draft: Draft
    review: Review
    changed: bool
    page: str
    path: str
    problems: tuple[str, ...]
    missing: tuple[str, ...]
    duplicates: tuple[Duplicate, ...]
    history: tuple[Commit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A page that was written. ``commit`` is empty outside a git checkout, ``problem`` says why git did not take it."""

    id: str
    path: str
    commit: str = ""
    problem: str = ""


class Desk:
    """The drafts of a folder, held against published pages. ``team`` is the folder that pages are published to."""

    def __init__(
        self, folder: Path, cases: CaseSet, mechanisms: MechanismSet, words: Vocabulary, team: Path | None = None
    ) -> None:
        self._folder = folder
        self._cases = cases
        self._mechanisms = mechanisms
        self._words = words
        self._team = team

    def queue(self) -> tuple[QueueItem, ...]:
        return tuple(self._item(draft) for draft in load_drafts(self._folder))

    def entry(self, draft_id: str) -> Entry:
        """Raises `NotFound`."""
        draft = self._draft(draft_id)
        text = page_text(self._folder, draft)
        review = load_review(self._folder, draft.id)
        problems, missing = self._problems(text)
        return Entry(
            draft=draft,
            review=current(review, digest_of(text)),
            changed=changed_since(review, digest_of(text)),
            page=text,
            path=str(page_path(self._folder, draft) or ""),
            problems=problems,
            missing=missing,
            duplicates=self.duplicates([draft.id])[draft.id],
            history=history(Path(review.published_as)) if review.published_as else (),
        )

    def duplicates(self, draft_ids: Collection[str]) -> Mapping[str, tuple[Duplicate, ...]]:
        """Of each of these drafts the other drafts and published cases that are probably the same."""
        drafts = {draft.id: draft for draft in load_drafts(self._folder)}
        incidents = {draft.id: incident_of_draft(draft, self._mechanisms) for draft in drafts.values()}
        cases = {
            language: [
                incident_of_case(case, language, self._mechanisms)
                for case in self._cases.published
                if case.level == "case"
            ]
            for language in {drafts[draft_id].language for draft_id in draft_ids}
        }
        found = {}
        for draft_id in draft_ids:
            review = load_review(self._folder, draft_id)
            published = {self._published_id(review), review.merged_into}
            others = (case for case in cases[drafts[draft_id].language] if case.id not in published)
            found[draft_id] = duplicates(incidents[draft_id], (*incidents.values(), *others))
        return found

    def edit(self, draft_id: str, text: str, at: datetime) -> tuple[str, ...]:
        """Replace the page; the problems and what is missing are returned, the text is stored in any case."""
        draft = self._draft(draft_id)
        text = text.replace("\r\n", "\n")
        text = text if text.endswith("\n") else f"{text}\n"
        write_page(self._folder, draft, text)
        self._decide(draft, "edit", at)
        problems, missing = self._problems(text)
        return (*problems, *missing)

    def approve(self, draft_id: str, at: datetime) -> Review:
        """Raises `InvalidRequest` if the page has problems."""
        draft = self._draft(draft_id)
        self._require_publishable(page_text(self._folder, draft))
        return self._decide(draft, "approve", at)

    def reject(self, draft_id: str, reason: str, at: datetime) -> Review:
        return self._decide(self._draft(draft_id), "reject", at, reason=reason)

    def merge(self, draft_id: str, case_id: str, at: datetime) -> Publication:
        """Add the draft's symptoms and sources to a page of the team.

        A built-in case is not changed: it becomes the first related case of the draft, which stays in the queue.
        """
        draft = self._draft(draft_id)
        text = page_text(self._folder, draft)
        target = self._cases.get(case_id)
        if target is None:
            raise NotFound(f"no case {case_id!r}{suggestion(case_id, {case.id for case in self._cases.cases})}")
        self._require(draft, "merge", at)
        path = self._path_of(case_id)
        if path is None:
            write_page(self._folder, draft, related_text(text, case_id))
            self._decide(draft, "edit", at)
            return Publication(id=case_id, path="")
        addition, _ = case_of(text)
        publication = self._write(path, case_id, merged_text(path.read_text(encoding="utf-8"), draft, addition))
        self._decide(draft, "merge", at, merged_into=case_id, published_as=publication.path)
        return publication

    def publish(self, draft_id: str, at: datetime, folder: Path | None = None) -> Publication:
        """Write the page below ``folder`` (else the team's folder) and commit it if that is a git checkout."""
        draft = self._draft(draft_id)
        team = folder or self._team
        if team is None:
            raise InvalidRequest("no folder to publish to", hint="name one with --folder, or set TRAINMEDIC_KB_PATHS")
        self._require(draft, "publish", at)
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

    def rule(self, draft_id: str, version: str) -> str:
        """The text of a rule page whose example is cut from the write-up."""
        return rule_of_draft(self._draft(draft_id), version)

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
            problems=len(self._problems(text)[0]),
            changed=changed_since(review, digest_of(text)),
        )

    def _problems(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What keeps the page from being published, and what a built-in page has beyond it."""
        if not text:
            return ("the draft's page was removed",), ()
        try:
            case, page = case_of(published_text(text, datetime.max.date()))
        except PageError as error:
            return (f"line {error.problem.line}: {error.problem.message}",), ()
        blocking = self._lint(case, page, "team")
        return blocking, tuple(problem for problem in self._lint(case, page, "built-in") if problem not in blocking)

    def _lint(self, case: Case, page: Page, profile: Profile) -> tuple[str, ...]:
        others = tuple(other for other in self._cases.cases if other.id != case.id)
        known = CaseSet(cases=(*others, case), pages={case.id: page})
        return tuple(dict.fromkeys(problem.message for problem in lint_case(case, known, self._words, profile=profile)))

    def _require_publishable(self, text: str) -> None:
        problems, _ = self._problems(text)
        if problems:
            raise InvalidRequest("the page is not ready: " + "; ".join(problems))

    def _require(self, draft: Draft, action: Action, at: datetime) -> None:
        digest = digest_of(page_text(self._folder, draft))
        decided(current(load_review(self._folder, draft.id), digest), action, at=at.isoformat(), page_digest=digest)

    def _decide(
        self,
        draft: Draft,
        action: Action,
        at: datetime,
        *,
        reason: str = "",
        published_as: str = "",
        merged_into: str = "",
    ) -> Review:
        digest = digest_of(page_text(self._folder, draft))
        review = decided(
            current(load_review(self._folder, draft.id), digest),
            action,
            at=at.isoformat(timespec="seconds"),
            page_digest=digest,
            reason=reason,
            published_as=published_as,
            merged_into=merged_into,
        )
        write_review(self._folder, draft.id, review)
        return review

    def _published_id(self, review: Review) -> str:
        return Path(review.published_as).stem

    def _path_of(self, case_id: str) -> Path | None:
        """The file of a team's page; None for a built-in case."""
        if self._team is None or any(path.stem == case_id for path, _ in discover(CASES.folder)):
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
