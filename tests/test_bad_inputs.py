"""Whatever is pasted, there is an answer: nothing raised, unbounded or executed, and always the same one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.bad_inputs import ASKED, BAD, DIGITS, Bad
from tests.every_case import every_case, some
from tests.incidents import (
    KTO_COMMAND,
    KTO_LOG,
    KTO_SINGLE,
    KTO_YAML,
    SWIFT_LOG,
    TRL_COMMAND,
    TRL_LOG,
)
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.source import Limits
from trainmedic.kb.parse.text.condense import Room
from trainmedic.kb.serialization import to_json
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings

ROOT = Path(__file__).parent.parent
PATIENCE_S = 180
"""A bound for one answer on a busy machine, traced by coverage; the usual is a few milliseconds."""
CHANGING = ("id", "conversation_id", "timings_ms", "trace_id")
TWICE = some(BAD, 4)
VERDICTS = {"answered", "need_input", "not_in_kb", "no_fault", "explained"}


def steady(answer: Answer) -> dict[str, Any]:
    """The answer as a client sees it, without what differs from one asking to the next."""
    shown = json.loads(to_json(answer))
    assert isinstance(shown, dict)
    return {key: value for key, value in shown.items() if key not in CHANGING}


def asked(advisor: Advisor, question: str, *files: Attachment) -> Answer:
    started = time.monotonic()
    answer = advisor.ask(Ask(question=question, attachments=files))
    assert time.monotonic() - started < PATIENCE_S
    return answer


def assert_sound(answer: Answer) -> None:
    """What holds of every answer."""
    assert answer.verdict in VERDICTS
    foreign = [messages("reply.general", language) for language in ("en", "zh")]
    assert answer.answer.startswith("> ") or answer.answer in foreign
    names = [i.name for i in answer.receipt.inputs]
    assert len(names) == len(set(names))
    places = [e for f in answer.findings for e in f.evidence] + [s.evidence for s in answer.signals]
    places += [p.evidence for p in answer.receipt.problems if p.evidence is not None]
    for place in places:
        assert place.attachment in names
        assert place.line >= 1
        assert place.column >= 1
        assert (place.end_line, place.end_column) >= (place.line, place.column)
    markers = {c.marker for c in answer.citations}
    assert markers == set(range(1, len(markers) + 1))
    assert len(to_json(answer)) < 1_000_000 + 10 * sum(i.bytes for i in answer.receipt.inputs)


@pytest.mark.parametrize("case", BAD, ids=lambda bad: bad.name)
def test_every_bad_input_gets_a_sound_answer_and_the_same_again(advisor: Advisor, case: Bad) -> None:
    first = asked(advisor, case.question, *case.attachments)
    assert_sound(first)
    if case in TWICE:
        assert steady(asked(advisor, case.question, *case.attachments)) == steady(first)
    codes = {p.code for p in first.receipt.problems}
    assert set(case.problems) <= codes
    assert set(case.rules) <= {f.rule_id for f in first.findings if f.status == "fired"}
    assert len([i for i in first.receipt.inputs if i.name is not None]) == len(case.files)


def test_yaml_cut_anywhere_is_read_as_far_as_it_goes(advisor: Advisor) -> None:
    whole = ("# 偏好训练\n" + KTO_YAML).encode()
    recognised = []
    for end in range(0, len(whole) + 1, 4):
        cut = Attachment(name="kto.yaml", content=whole[:end])
        framework = parse("", (cut,)).run.framework
        recognised.append(framework is not None and framework.value == "llamafactory")
        if end % 64 == 0:
            assert asked(advisor, "", cut).verdict in VERDICTS
    first = recognised.index(True)
    assert all(recognised[first:]), "once recognised, more text does not make it unknown"


@every_case("text", [KTO_COMMAND, TRL_COMMAND, TRL_LOG, KTO_LOG, SWIFT_LOG])
def test_any_text_cut_anywhere_is_parsed(text: str) -> None:
    for end in range(0, len(text), 10):
        evidence = parse("", (Attachment(name="paste.txt", content=text[:end]),))
        assert evidence.sources[1].text == text[:end]


# --- a log of fifty megabytes ---------------------------------------------------------------------------------------


def test_a_log_of_fifty_megabytes_is_answered_within_bounds(advisor: Advisor) -> None:
    line = "{'loss': 0.6931, 'grad_norm': 1.2, 'learning_rate': 1e-6, 'epoch': 0.01}\n"
    size = 50_000_000
    log = (KTO_SINGLE + line * (size // len(line)) + TRL_LOG).encode()
    started = time.monotonic()
    answer = advisor.ask(Ask(question=ASKED, attachments=(Attachment(name="train.log", content=log),)))
    assert time.monotonic() - started < PATIENCE_S
    read = answer.receipt.inputs[1]
    assert not read.truncated
    assert (read.bytes, read.lines) == (len(log), log.count(b"\n"))
    assert read.note.startswith(f"all {read.lines} lines were read; ")
    assert {"loss_zero_grad_norm_nan"} <= {s.kind for s in answer.signals}
    assert answer.run.framework == "openrlhf"
    last = log.count(b"\n")
    assert {s.evidence.line for s in answer.signals if s.kind == "loss_zero_grad_norm_nan"} <= {last - 1, last}
    assert len(to_json(answer)) < 200_000


def test_the_memory_that_a_log_of_fifty_megabytes_takes_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(KTO_SINGLE.encode() + b"{'loss': 0.6931, 'grad_norm': 1.2, 'epoch': 0.01}\n" * 1_050_000)
    assert path.stat().st_size > 50_000_000
    small = tmp_path / "small.log"
    small.write_bytes(path.read_bytes()[:5_000])
    code = (
        "import resource, sys; from trainmedic.ui.cli import main\n"
        "for log in sys.argv[1:]:\n"
        "    main(['check', log, '--exit-zero', '--format', 'json'])\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    # A process starts with the peak of the one that spawned it: of a small one here, not of the whole test run.
    spawn = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', *sys.argv[1:]]).returncode)"
    untraced = {name: value for name, value in os.environ.items() if not name.startswith(("COV_CORE_", "COVERAGE_"))}
    done = subprocess.run(
        [sys.executable, "-c", spawn, code, str(small), str(path)],
        capture_output=True, check=True, cwd=ROOT, env=untraced,
    )  # fmt: skip
    answers = [json.loads(line) for line in re.split(rb"\n(?=\{)", done.stdout)]
    assert ["were read; " in each["receipt"]["inputs"][1]["note"] for each in answers] == [False, True]
    start, peak = (int(line) * (1 if sys.platform == "darwin" else 1024) for line in done.stderr.split())
    assert peak - start < 400_000_000, "bytes, the log itself included"


def test_what_is_kept_of_many_large_inputs_is_bounded() -> None:
    limits = Limits(room=Room(head=10_000, between=10_000, tail=10_000), total=100_000)
    files = tuple(Attachment(name=f"{n}.log", content=b"loss: 1\n" * 5_000) for n in range(12))
    evidence = parse("x y\n" * 100_000, files, limits=limits)
    assert sum(len(s.text.replace("\n", "")) for s in evidence.sources) <= limits.total
    assert {p.code for p in evidence.receipt.problems} >= {"truncated"}


# --- nothing pasted is obeyed ---------------------------------------------------------------------------------------


def test_nothing_pasted_is_executed(advisor: Advisor, tmp_path: Path) -> None:
    mark = tmp_path / "owned"
    order = f"touch {mark}"
    pastes = {
        "a.yaml": f"a: !!python/object/apply:os.system ['{order}']\n",
        "a.py": f"import os; os.system('{order}'); DPOConfig(beta=__import__('os').system('{order}'))\n",
        "a.sh": f"{order}\nX=$({order}) python train.py --lr `{order}`\n",
        "a.json": f'{{"__reduce__": "{order}", "a": "$({order})"}}',
        "a.toml": f'a = "$({order})"\n',
    }
    asked(advisor, f"$({order})", *(Attachment(name=n, content=c) for n, c in pastes.items()))
    assert not mark.exists()


# --- what is shown stays inside its frame ---------------------------------------------------------------------------


def outside_code(markdown: str) -> str:
    """The lines of a Markdown text that stand in no fenced block, as CommonMark fences them."""
    kept = []
    fence = ""
    for line in markdown.split("\n"):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            kept.append(line)
    assert fence == "", "a block is left open"
    return "\n".join(kept)


@every_case("ticks", ["```", "````", "~~~", "```````` ", "```diff"])
def test_a_paste_cannot_leave_the_code_block_of_its_patch(advisor: Advisor, ticks: str) -> None:
    rows = KTO_SINGLE.rstrip("\n").split("\n")
    text = (
        f"{ticks}\n# Owned <b>by</b> me\n"
        + "\n".join(rows)
        + f"\n{ticks}\n# Owned [again](http://evil.example)\n{ticks}\n"
    )
    answer = asked(advisor, "openrlhf kto loss is nan", Attachment(name="train.sh", content=text))
    assert "```" in answer.answer
    shown = outside_code(answer.answer)
    assert "Owned" not in shown
    assert "--vanilla_loss" in answer.answer


def test_a_name_cannot_leave_its_line(advisor: Advisor) -> None:
    name = "a`\n\n# Owned\n<img src=x onerror=alert(1)> [x](http://evil.example).sh"
    answer = asked(advisor, "loss is nan", Attachment(name=name, content=KTO_SINGLE))
    assert "\n# Owned" not in answer.answer
    assert "<img" not in answer.answer
    assert "](http://evil" not in answer.answer


# --- over HTTP ------------------------------------------------------------------------------------------------------

OVER_HTTP = (
    "a lone surrogate", "nul characters", "an unclosed fence", "half a command", "deep json", "a yaml bomb",
    "fifteen configurations", "learning_rate of five thousand digits",
    "infinite numbers in python", "html", "a path out of the folder", "a name with line breaks",
    "the same name three times", "a sql injection", "zero-width characters", "colours", "decimal numbers in a log",
)  # fmt: skip


@pytest.fixture
def client(advisor: Advisor) -> Iterator[TestClient]:
    patient = Settings(request_timeout_s=PATIENCE_S)
    with TestClient(create_app(advisor, patient), raise_server_exceptions=False) as client:
        yield client


@every_case("name", OVER_HTTP)
def test_bad_inputs_over_http_are_answered_and_the_answer_is_json(client: TestClient, name: str) -> None:
    case = next(bad for bad in BAD if bad.name == name)
    files = [{"name": file, "content": content} for file, content in case.files]
    raw = json.dumps({"question": case.question, "attachments": files}).encode()
    for path, content in (
        ("/v1/ask", raw),
        ("/v1/check", json.dumps({"attachments": files or [{"name": "a", "content": ""}]})),
    ):
        response = client.post(path, content=content, headers={"content-type": "application/json"})
        assert response.status_code == 200, response.text[:300]
        answer = json.loads(response.content, parse_constant=pytest.fail)
        assert set(case.rules) <= {f["rule_id"] for f in answer["findings"]}
    response = client.post(
        "/v1/search", json={"query": case.question.replace("\ud800", "").replace("\udc80", "")[:5_000] or "x"}
    )
    assert response.status_code == 200


# --- anything at all ------------------------------------------------------------------------------------------------

FRAGMENTS = (
    KTO_COMMAND, KTO_SINGLE, KTO_YAML, KTO_LOG, SWIFT_LOG, TRL_LOG, "```", "```yaml\n", "\n", "\r\n", "\x00", "\t",
    "'", '"', "$(", "${", "{{", "[", "<<EOF\n", "\\\n", "--beta ", "nan", "NaN", DIGITS[:400], "1e999", "\u202e",
    "\u200b", "\ufeff", "\x1b[31m", "Traceback (most recent call last):\n", "RuntimeError: ", "transformers==",
    "损失变成 nan", "：", "- ", "# ", "!!python/object:os.system", "&a *a", "%|", "| a | b |\n", "key: value\n",
    "lr=1e-5,", "export A=$A$A\n", "\ud800",
)  # fmt: skip
pieces = st.one_of(
    st.sampled_from(FRAGMENTS),
    st.sampled_from(FRAGMENTS).flatmap(lambda text: st.integers(0, len(text)).map(lambda n: text[:n])),
    st.text(max_size=12),
)
pastes = st.lists(pieces, max_size=9).map("".join)
contents = st.one_of(pastes, st.binary(max_size=200), pastes.map(lambda t: t.encode("utf-16", "surrogatepass")))
names = st.one_of(
    st.sampled_from(["t.sh", "a.yaml", "ds.json", "t.py", "a.toml", "a.log", "pip.txt", "m.csv", "", "../x", "a.ini"]),
    st.text(max_size=6),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=pastes, files=st.lists(st.tuples(names, contents), min_size=1, max_size=4))
def test_any_mixture_of_pieces_is_answered_soundly(
    advisor: Advisor, question: str, files: list[tuple[str, str | bytes]]
) -> None:
    attachments = tuple(Attachment(name=name, content=content) for name, content in files)
    answer = asked(advisor, question, *attachments)
    assert_sound(answer)
    assert steady(asked(advisor, question, *attachments)) == steady(answer)


def test_the_environment_is_never_shown(advisor: Advisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_OF_THE_SERVER", "swordfish-of-the-server")
    text = "export X=$CANARY_OF_THE_SERVER\npython train.py --lr ${CANARY_OF_THE_SERVER} --a $HOME\n"
    answer = asked(
        advisor, "nan", Attachment(name="t.sh", content=text), Attachment(name="t.py", content="X = os.environ")
    )
    shown = to_json(answer)
    assert "swordfish" not in shown
    assert os.environ.get("PATH", "?") not in shown
