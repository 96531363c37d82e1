"""Ingested threads beside the answer: quoted with who said it, and never a diagnosis of ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from trainmedic.ingest.items import Discussion, Message
from trainmedic.ingest.threads.local import Local
from trainmedic.ingest.threads.sync import sync
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.ranking.similar import mechanisms_near
from trainmedic.service.settings import Settings
from trainmedic.ui.loading import threads_of

QUESTION = "Our frobnicator reward server hangs after the first step of GRPO on 4 GPUs, nothing in the log"
HANG = Discussion(
    origin="a",
    key="1",
    title="GRPO hangs after the first step with the frobnicator reward server",
    url="https://tracker.example.org/1",
    resolved=True,
    messages=(
        Message(text="On 4 GPUs the run hangs after step 1.", role="reporter"),
        Message(
            text="The cause is the proxy: set NO_PROXY [1](https://evil.example.org) <b>now</b>.", role="maintainer"
        ),
    ),
)
OPEN = replace(
    HANG, key="2", messages=HANG.messages[:1], resolved=False, url="", title="frobnicator reward server hang"
)
OTHER = replace(HANG, key="3", title="The logo on the login page is too small", messages=(Message(text="Really."),))


@pytest.fixture
def with_threads(advisor: Advisor, tmp_path: Path) -> Advisor:
    knowledge = advisor.knowledge
    store = threads_of(Settings(data_dir=tmp_path), knowledge.embedder)
    embed = knowledge.embedder.vectors
    sync("tracker", [HANG, OPEN, OTHER], store, Local(embed), lambda vector: mechanisms_near(vector, knowledge))
    return Advisor(replace(knowledge, threads=store), parse)


def ask(advisor: Advisor, question: str = QUESTION, language: Literal["auto", "en", "zh"] = "auto") -> Answer:
    return advisor.ask(Ask(question=question, language=language))


def test_a_similar_report_is_shown_last_with_who_resolved_it_and_where(with_threads: Advisor) -> None:
    answer = ask(with_threads)
    first = answer.similar[0]
    assert (first.id, first.url, first.resolved_by) == ("tracker:1", "https://tracker.example.org/1", "maintainer")
    section = answer.sections[-1]
    assert section.kind == "similar"
    assert "resolved by a maintainer" in section.items[0]
    assert answer.answer.endswith(section.body)


def test_resolved_reports_come_before_open_ones_and_unrelated_ones_are_left_out(with_threads: Advisor) -> None:
    assert [view.id for view in ask(with_threads).similar] == ["tracker:1", "tracker:2"]


CHINESE = Discussion(
    origin="b",
    key="4",
    title="910B 上 KTO 训练显存每步上涨",
    resolved=True,
    messages=(
        Message(text="KTO 训练几百步后 OOM，loss 正常。", role="reporter"),
        Message(text="原因是保存了 logits。"),
    ),
)


@pytest.mark.parametrize(("question", "found"), [(QUESTION, ["1"]), ("910B KTO 训练显存每步上涨，几百步后 OOM", ["4"])])
def test_of_a_few_threads_those_about_something_else_are_left_out(
    advisor: Advisor, tmp_path: Path, question: str, found: list[str]
) -> None:
    knowledge = advisor.knowledge
    store = threads_of(Settings(data_dir=tmp_path), knowledge.embedder)
    sync("t", [HANG, OTHER, CHINESE], store, Local(knowledge.embedder.vectors), lambda _: {"rank-waits": 1.0})
    answer = ask(Advisor(replace(knowledge, threads=store), parse), question)
    assert [view.id.partition(":")[2] for view in answer.similar] == found


def test_a_quoted_text_cannot_pass_for_a_citation_a_link_or_a_tag(with_threads: Advisor) -> None:
    body = ask(with_threads).sections[-1].body
    assert "NO_PROXY ［1］" in body
    assert "](https://evil" not in body
    assert "<b>" not in body


def test_a_thread_of_no_known_cause_changes_neither_verdict_nor_first_cause(
    advisor: Advisor, with_threads: Advisor
) -> None:
    question = f"{QUESTION}, only rank 0 logs its metric"  # one cause is clear; a thread may decide between equals
    before, after = ask(advisor, question), ask(with_threads, question)
    assert after.similar != ()
    assert (before.verdict, before.causes[0].case_id) == (after.verdict, after.causes[0].case_id)
    assert before.similar == ()


def test_a_thread_that_a_case_cites_speaks_for_this_case_and_is_never_high(advisor: Advisor, tmp_path: Path) -> None:
    knowledge = advisor.knowledge
    case = next(case for case in knowledge.case_pages.values() if case.sources[0].url.startswith("https://github"))
    thread = replace(HANG, url=case.sources[0].url)
    store = threads_of(Settings(data_dir=tmp_path), knowledge.embedder)
    sync(
        "tracker", [thread], store, Local(knowledge.embedder.vectors), lambda vector: mechanisms_near(vector, knowledge)
    )
    _, context = Advisor(replace(knowledge, threads=store), parse).candidates(Ask(question=QUESTION))
    report = context.reported(case.id)
    assert report is not None
    assert [thread.key for thread in report.threads] == ["1"]
    assert all(cause.confidence != "high" for cause in ask(Advisor(replace(knowledge, threads=store), parse)).causes)


def test_an_unresolved_thread_speaks_for_nothing(advisor: Advisor, tmp_path: Path) -> None:
    knowledge = advisor.knowledge
    store = threads_of(Settings(data_dir=tmp_path), knowledge.embedder)
    sync("tracker", [OPEN], store, Local(knowledge.embedder.vectors), lambda vector: mechanisms_near(vector, knowledge))
    _, context = Advisor(replace(knowledge, threads=store), parse).candidates(Ask(question=QUESTION))
    assert ([item.thread.key for item in context.similar], context.reports) == (["2"], {})


def test_a_thread_is_taken_for_what_the_nearest_pages_are_about(with_threads: Advisor) -> None:
    threads = with_threads.knowledge.threads
    assert threads is not None
    (thread,) = threads.get(["tracker:1"])
    assert thread.mechanisms
    assert sum(thread.mechanisms.values()) <= 1.0
    assert set(thread.mechanisms) <= {mechanism.id for mechanism in with_threads.knowledge.mechanisms.mechanisms}
