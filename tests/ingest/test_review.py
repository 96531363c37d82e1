"""From a draft to a published page: decisions, lint, duplicates and git."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.ingest.reading import build
from tests.shipped import shipped_cases
from trainmedic.ingest.authoring.lint import Standards, lint
from trainmedic.ingest.items import Raw
from trainmedic.ingest.review.desk import Desk
from trainmedic.ingest.review.page_text import case_of
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.page import discover
from trainmedic.kb.parse.pipeline import parse

NOW = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)
BUILT_IN = "openrlhf-kto-vanilla-loss-nan"
POST_MORTEM = """# KTO loss is NaN from the first step with OpenRLHF

## What happened

We trained with OpenRLHF 0.3.4 and the loss was NaN from step 1.

```bash
deepspeed --module openrlhf.cli.train_kto --pretrain meta-llama/Llama-3-8B --vanilla_loss --micro_train_batch_size 1
```

```
Traceback (most recent call last):
  File "/srv/openrlhf/trainer/kto_trainer.py", line 220, in train
    loss.backward()
RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.
```

## Root cause

With a micro batch of one there are only desirable or only undesirable samples. --vanilla_loss makes it so.

## Solution

Remove --vanilla_loss, or use --micro_train_batch_size 2.
"""
THREAD = """# Checkpoint save hangs on the shared disk

## Problem

Saving never returns on 64 ranks.

```
Traceback (most recent call last):
  File "/srv/kto.py", line 7, in train
    loss.backward()
RuntimeError: Function 'LogBackward0' returned nan values in its 3th output.
```

## Root cause

The metadata server of the file system was full.
"""
DATALOADER = """# GRPO 训练时 dataloader 卡住

## 现象

第一个 epoch 后进程不再打印日志。

## 根本原因

共享内存只有 64 MB，worker 互相等待。

## 解决方案

把 /dev/shm 调到 16 GB。
"""


def drafted(folder: Path, *texts: str) -> list[str]:
    raws = [Raw(origin=f"note-{n}.md", content=text, format="markdown") for n, text in enumerate(texts)]
    return [build([raw], folder, source=raw.origin).written[0].id for raw in raws]


def desk(folder: Path, team: Path | None = None) -> Desk:
    cases = shipped_cases() if team is None or not team.exists() else load_cases((team,))
    return Desk(folder, cases, vocabulary(), team)


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, encoding="utf-8"
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "team"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "Team")
    git(folder, "config", "user.email", "team@example.org")
    return folder


def test_an_approved_draft_becomes_one_commit_of_the_teams_folder(tmp_path: Path, checkout: Path) -> None:
    (made,) = drafted(tmp_path / "drafts", POST_MORTEM)
    (checkout / "unrelated.txt").write_text("staged by somebody else\n", encoding="utf-8")
    git(checkout, "add", "unrelated.txt")
    reviewer = desk(tmp_path / "drafts", checkout)
    assert [item.state for item in reviewer.queue()] == ["draft"]
    reviewer.approve(made, NOW)
    publication = reviewer.publish(made, NOW)
    assert Path(publication.path).parent == checkout / "causes"
    assert git(checkout, "log", "--format=%s") == "KTO loss is NaN from the first step with OpenRLHF"
    assert git(checkout, "show", "--name-only", "--format=") == f"causes/{publication.id}.md"
    case = next(case for case in load_cases((checkout,)).published if case.id == publication.id)
    assert (case.reviewed, case.status, case.no_rule) == ("2026-11-23", "published", "")
    assert [item.state for item in reviewer.queue()] == ["published"]
    assert git(checkout, "log", "--format=%h") == publication.commit


def test_what_git_refuses_is_named_and_the_page_is_there(tmp_path: Path, checkout: Path) -> None:
    (made,) = drafted(tmp_path / "drafts", POST_MORTEM)
    hook = checkout / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no pages on Mondays >&2\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    reviewer = desk(tmp_path / "drafts", checkout)
    reviewer.approve(made, NOW)
    publication = reviewer.publish(made, NOW)
    assert publication.problem == "no pages on Mondays"
    assert Path(publication.path).exists()


def test_a_page_is_published_only_after_it_was_approved_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "drafts"
    (made,) = drafted(folder, POST_MORTEM)
    reviewer = desk(folder, tmp_path / "pages")
    with pytest.raises(InvalidRequest, match="cannot publish a page that is draft"):
        reviewer.publish(made, NOW)
    reviewer.approve(made, NOW)
    page = folder / f"{made}.md"
    page.write_text(page.read_text(encoding="utf-8").replace("batch of one", "batch of 1"), encoding="utf-8")
    assert reviewer.entry(made).review.state == "draft"
    with pytest.raises(InvalidRequest, match="cannot publish"):
        reviewer.publish(made, NOW)


def test_an_edited_page_is_published_again_over_the_first(tmp_path: Path, checkout: Path) -> None:
    (made,) = drafted(tmp_path / "drafts", POST_MORTEM)
    reviewer = desk(tmp_path / "drafts", checkout)
    reviewer.approve(made, NOW)
    first = reviewer.publish(made, NOW)
    text = reviewer.entry(made).page.replace("batch of one", "batch of 1")
    reviewer.edit(made, text, NOW)
    reviewer.approve(made, NOW)
    second = reviewer.publish(made, NOW)
    assert second.path == first.path
    assert len(git(checkout, "log", "--format=%h").splitlines()) == 2
    assert "batch of 1" in Path(second.path).read_text(encoding="utf-8")


def test_a_rejection_needs_a_reason_and_ends_with_an_edit(tmp_path: Path) -> None:
    (made,) = drafted(tmp_path, POST_MORTEM)
    reviewer = desk(tmp_path)
    with pytest.raises(InvalidRequest, match="reason"):
        reviewer.reject(made, "  ", NOW)
    assert reviewer.reject(made, "a typo of\nours", NOW).reason == "a typo of ours"
    with pytest.raises(InvalidRequest, match="cannot approve a page that is rejected"):
        reviewer.approve(made, NOW)
    reviewer.edit(made, reviewer.entry(made).page, NOW)
    assert reviewer.entry(made).review.state == "draft"


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("no front matter at all", "the page must start with front matter"),
        ("---\nid: [\n---\n", "not YAML"),
        ("---\nid: x\n---\n", "field 'title' is missing"),
    ],
)
def test_a_malformed_page_is_stored_and_not_approved(tmp_path: Path, broken: str, problem: str) -> None:
    (made,) = drafted(tmp_path, POST_MORTEM)
    reviewer = desk(tmp_path)
    assert problem in reviewer.edit(made, broken, NOW)[0]
    assert reviewer.queue()[0].problems == 1
    with pytest.raises(InvalidRequest, match="not ready"):
        reviewer.approve(made, NOW)


@pytest.mark.parametrize("page_id", ["../../outside", "Draft"])
def test_no_id_leads_out_of_the_folder(tmp_path: Path, page_id: str) -> None:
    (made,) = drafted(tmp_path, POST_MORTEM)
    reviewer = desk(tmp_path, tmp_path / "pages")
    reviewer.edit(made, reviewer.entry(made).page.replace(f"id: {made}", f"id: {page_id}"), NOW)
    assert "must be the file's name" in reviewer.entry(made).problems[0]


def test_what_an_edit_brings_in_of_persons_and_secrets_is_not_published(tmp_path: Path, checkout: Path) -> None:
    (made,) = drafted(tmp_path / "drafts", POST_MORTEM)
    reviewer = desk(tmp_path / "drafts", checkout)
    page = reviewer.entry(made).page
    page = page.replace("KTO loss is NaN", "KTO loss of @jane is NaN on gpu-17.corp.internal")
    page = page.replace("/srv/openrlhf", "/home/jane/openrlhf").replace("url: file:", "url: file:/home/jane/")
    page = page.replace(
        "We trained", r"jane@corp.com at C:\Users\jane\x, 10.12.0.7:29500, hf_AbCdEfGhIjKlMnOpQrStUv: we trained"
    )
    assert page.count("jane") > 5
    reviewer.edit(made, page, NOW)
    reviewer.approve(made, NOW)
    published = reviewer.publish(made, NOW)
    text = Path(published.path).read_text(encoding="utf-8") + git(checkout, "log")
    assert not [word for word in ("jane", "gpu-17", "10.12.0.7", "hf_AbCd") if word in text]
    assert "kto_trainer.py" in text


def test_a_removed_page_and_a_damaged_decision_are_problems_not_failures(tmp_path: Path) -> None:
    (made,) = drafted(tmp_path, POST_MORTEM)
    reviewer = desk(tmp_path)
    reviewer.approve(made, NOW)
    (tmp_path / "reviews" / f"{made}.json").write_text("{", encoding="utf-8")
    (tmp_path / f"{made}.md").unlink()
    entry = reviewer.entry(made)
    assert entry.review.state == "draft"
    assert entry.problems == ("the draft's page was removed",)


def test_an_unknown_draft_is_not_found_and_the_end_of_an_id_is_enough(tmp_path: Path) -> None:
    (made,) = drafted(tmp_path, POST_MORTEM)
    assert desk(tmp_path).entry(made.rpartition("-")[2]).draft.id == made
    with pytest.raises(NotFound):
        desk(tmp_path).entry("draft-of-nothing")


def test_a_draft_with_much_the_same_text_and_a_case_of_the_same_source_are_proposed(tmp_path: Path) -> None:
    first, again, _, _ = drafted(tmp_path, POST_MORTEM, POST_MORTEM + "\nSeen twice.\n", THREAD, DATALOADER)
    (like,) = (like for like in desk(tmp_path).entry(first).duplicates if like.of == "draft")
    assert like.id == again
    assert like.share > 0.9
    case = next(case for case in shipped_cases().published if case.id == BUILT_IN)
    raw = Raw(origin="x", content=DATALOADER, format="markdown", url=f"{case.sources[0].url}#issuecomment-1")
    (draft,) = build([raw], tmp_path / "cited").written
    assert (BUILT_IN, 1.0) in {(like.id, like.share) for like in desk(tmp_path / "cited").entry(draft.id).duplicates}


def test_a_draft_is_merged_into_a_page_of_the_team(tmp_path: Path, checkout: Path) -> None:
    first, other = drafted(tmp_path / "drafts", POST_MORTEM, THREAD)
    reviewer = desk(tmp_path / "drafts", checkout)
    reviewer.approve(first, NOW)
    published = reviewer.publish(first, NOW)
    reviewer.merge(other, published.id, NOW)
    merged, _ = case_of(Path(published.path).read_text(encoding="utf-8"))
    assert "Checkpoint save hangs on the shared disk" in merged.symptoms["en"]
    assert [source.url for source in merged.sources] == ["file:note-0.md", "file:note-1.md"]
    assert reviewer.entry(other).review.merged_into == published.id
    assert len(git(checkout, "log", "--format=%h").splitlines()) == 2


def test_a_built_in_case_is_not_changed(tmp_path: Path) -> None:
    (made,) = drafted(tmp_path, POST_MORTEM)
    with pytest.raises(InvalidRequest, match="not a page of yours"):
        desk(tmp_path).merge(made, BUILT_IN, NOW)
    with pytest.raises(NotFound):
        desk(tmp_path).merge(made, "no-such-case", NOW)
    assert desk(tmp_path).entry(made).review.state == "draft"


def test_a_page_does_not_replace_another_one(tmp_path: Path) -> None:
    (made,) = drafted(tmp_path / "drafts", POST_MORTEM)
    reviewer = desk(tmp_path / "drafts", tmp_path / "pages")
    reviewer.edit(made, reviewer.entry(made).page.replace(f"id: {made}", f"id: draft-{BUILT_IN}"), NOW)
    reviewer.approve(made, NOW)
    with pytest.raises(InvalidRequest, match="already"):
        reviewer.publish(made, NOW)


def test_a_teams_page_needs_less_than_a_built_in_one(tmp_path: Path) -> None:
    (made,) = drafted(tmp_path / "drafts", POST_MORTEM)
    reviewer = desk(tmp_path / "drafts", tmp_path / "pages")
    assert reviewer.entry(made).problems == ()
    reviewer.approve(made, NOW)
    publication = reviewer.publish(made, NOW)
    cases, names = load_cases((tmp_path / "pages",)), {name for _, name in discover(tmp_path / "pages")}
    standards = Standards(team=names, today=NOW.date())
    assert lint(RuleSet(rules=()), cases, parse, vocabulary(), only=names, standards=standards) == ()
    strict = lint(RuleSet(rules=()), cases, parse, vocabulary(), only=names)
    assert any("unknown word 'unsorted'" in str(problem) for problem in strict)
    assert publication.id in str(strict[0])


def test_what_may_hold_a_users_question_is_read_by_nobody_else_on_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "drafts"
    (made,) = drafted(folder, POST_MORTEM)
    desk(folder).edit(made, "---\nid: x\n---\n", NOW)
    desk(folder).reject(made, "no cause", NOW)
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (folder, folder / "reviews")} == {0o700}


@pytest.mark.parametrize(
    ("removed", "problem"),
    [
        ("### Cause\n", "en/Cause: the section is missing"),
        ("signals:\n- loss_nan", "signals: unknown word 'loss_nam'"),
        ("evidence: reported", "evidence: is maintainer, but no source says"),
    ],
)
def test_even_a_teams_page_needs_a_cause_known_words_and_its_evidence(
    tmp_path: Path, removed: str, problem: str
) -> None:
    (made,) = drafted(tmp_path, POST_MORTEM)
    text = (tmp_path / f"{made}.md").read_text(encoding="utf-8")
    assert removed in text
    other = {"### Cause\n": "### How to confirm\n", "evidence: reported": "evidence: maintainer"}
    text = text.replace(removed, other.get(removed, "signals:\n- loss_nam"))
    if removed.startswith("### Cause"):
        text = text.replace("### How to confirm\n\nTo be written by the reviewer.\n", "")
    assert any(line.startswith(problem) for line in desk(tmp_path).edit(made, text, NOW))
