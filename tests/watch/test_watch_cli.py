"""``trainmedic watch`` as a user runs it: a log that grows, a command that fails, and who is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.scripted import Scripted, sends
from trainmedic.kb.errors import InvalidSettings
from trainmedic.ui.cli import main
from trainmedic.ui.present.slack_text import inert
from trainmedic.ui.watch.destination import NotDelivered, Notice, destination

HEALTHY = "".join(f"{{'loss': {2.0 - n / 50}, 'grad_norm': 1.{n % 7}, 'step': {n}}}\n" for n in range(1, 12))
BROKEN = "{'loss': nan, 'grad_norm': nan, 'step': 12}\n"
KTO = "deepspeed --module openrlhf.cli.train_kto --micro_train_batch_size 1 --vanilla_loss --pretrain x\n"
VERSIONS = "openrlhf==0.3.2\ntransformers==4.43.3\n"


@pytest.fixture
def receiver() -> Iterator[Scripted]:
    with Scripted(sends(200)) as taken:
        yield taken


@pytest.fixture(autouse=True)
def _indexed(knowledge_folder: Path, monkeypatch: pytest.MonkeyPatch, knowledge_loaded: None) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(knowledge_folder))


@pytest.fixture
def kto(tmp_path: Path) -> list[str]:
    (tmp_path / "train.sh").write_text(KTO, encoding="utf-8")
    (tmp_path / "pip.txt").write_text(VERSIONS, encoding="utf-8")
    return ["--config", str(tmp_path / "train.sh"), "--config", str(tmp_path / "pip.txt")]


@pytest.fixture
def broken(tmp_path: Path) -> str:
    (tmp_path / "train.log").write_text(HEALTHY + BROKEN, encoding="utf-8")
    return str(tmp_path / "train.log")


def test_a_log_is_diagnosed_with_the_configuration_beside_it(
    broken: str, kto: list[str], capsys: pytest.CaptureFixture[str], receiver: Scripted
) -> None:
    assert main(["watch", broken, *kto, "--once", "--language", "en", "--webhook", receiver.url]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "openrlhf-kto-vanilla-loss-single-class" in shown.err.split("─")[0], "the check before"
    assert "step 12: a loss is NaN" in shown.err
    told = json.loads(*receiver.posted)
    assert (told["event"], told["step"]) == ("diagnosed", 12)
    assert told["answer"]["verdict"] == "answered"
    assert told["answer"]["causes"][0]["case_id"] == "openrlhf-kto-vanilla-loss-nan"


def test_a_service_that_apprise_knows_gets_headline_and_answer(broken: str, kto: list[str], receiver: Scripted) -> None:
    url = receiver.url.replace("http:", "json:")
    assert main(["watch", broken, *kto, "--once", "--language", "en", "--webhook", url]) == 0
    message = json.loads(*receiver.posted)
    assert "step 12: a loss is NaN" in message["title"]
    assert "vanilla_loss" in message["message"]
    assert message["type"] == "failure"


@pytest.mark.parametrize("scheme", ["http", "json"])
def test_a_redirect_is_followed_nowhere(scheme: str, receiver: Scripted) -> None:
    with Scripted(sends(302, "", Location=receiver.url)) as first:
        with pytest.raises(NotDelivered):
            destination(first.url.replace("http", scheme))(Notice(body={}, title="nan", text="nan"))
        assert len(first.posted) == 1
    assert receiver.posted == []


@pytest.mark.parametrize("url", ["ftp://a/b", "hooks.example/x", "http://", "file:///etc/passwd", "http://[x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettings):
        destination(url)


def test_a_pasted_mention_notifies_nobody() -> None:
    assert inert("<!channel> @all a@b.c") == "<\u200b!channel> @\u200ball a@b.c"


def test_a_webhook_that_refuses_and_a_service_that_is_away_are_said_and_harm_nothing(
    broken: str, kto: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with Scripted(sends(500)) as refusing:
        told = ["--webhook", f"{refusing.url}?token=secret", "--server", "http://127.0.0.1:9"]
        assert main(["watch", broken, *kto, "--once", *told, "--language", "en"]) == 0
    shown = capsys.readouterr().err
    assert "could not send to webhook: HTTP 500" in shown
    assert "secret" not in shown
    assert "http://127.0.0.1:9 did not answer (unreachable: " in shown
    assert "step 12" in shown


def test_a_command_keeps_its_output_and_its_exit_code_and_is_diagnosed(
    tmp_path: Path, kto: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        f"import sys\nprint({HEALTHY!r}, end='')\nprint({BROKEN!r}, end='', file=sys.stderr)\nsys.exit(7)\n",
        encoding="utf-8",
    )
    assert main(["watch", *kto, "--language", "en", "--", sys.executable, str(program)]) == 7
    done = capfd.readouterr()
    assert done.out == HEALTHY
    assert BROKEN in done.err
    assert done.err.count("step 12: a loss is NaN") == 1


def test_strict_does_not_launch_a_run_with_an_error(
    tmp_path: Path, kto: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "launched"
    assert main(["watch", *kto, "--strict", "--", "touch", str(mark)]) == 1
    assert not mark.exists()
    assert "not launched" in capsys.readouterr().err
    assert main(["watch", *kto, "--", "touch", str(mark)]) == 0
    assert mark.exists()


def test_a_configuration_named_in_the_command_is_checked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.sh"
    script.write_text(KTO, encoding="utf-8")
    assert main(["watch", "--language", "en", "--", "cat", str(script)]) == 0
    assert "openrlhf-kto-vanilla-loss-single-class" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "nothing to watch"),
        (["-", "--", "true"], 2, "belongs to the command"),
        (["/no/such.log", "--once"], 3, "such.log is not a file"),
        (["--", "/no/such/program"], 3, "cannot be started"),
    ],
)
def test_what_cannot_be_watched_is_told(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str
) -> None:
    assert main(["watch", *arguments]) == code
    assert told in capsys.readouterr().err


START = "import sys; from trainmedic.ui.cli import main; sys.exit(main())"
STEADY = """
import os, signal, sys, time
mark = open(sys.argv[1], "ab", buffering=0)
def note(number, frame):
    mark.write(f"{number}\\n".encode())
    if number in (signal.SIGINT, signal.SIGTERM):
        ending.append(number)
ending = []
for name in ("SIGUSR1", "SIGUSR2", "SIGINT", "SIGTERM", "SIGHUP"):
    if signal.getsignal(getattr(signal, name)) != signal.SIG_IGN:
        signal.signal(getattr(signal, name), note)
print("started")
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until and not ending:
    time.sleep(0.02)
print("finished")
print("x" * 99_999, file=sys.stderr)  # more than a pipe holds
mark.write(b"finished\\n")
sys.exit(42 if ending else 0)
"""
"""A trainer that saves at a signal, stops gently at an interrupt, and notes what it receives."""


def none_ignored() -> None:
    """Undo what a shell sets for jobs in the background, and nohup for its own."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Watched:
    """A watched command in a process group of its own."""

    def __init__(self, folder: Path, *before: str, seconds: float = 60.0) -> None:
        program = folder / "steady.py"
        program.write_text(STEADY, encoding="utf-8")
        self.mark = folder / "mark"
        self.mark.touch()
        watch = [*before, sys.executable, "-c", START, "watch", "--language", "en", "--"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        self.process = subprocess.Popen(
            [*watch, sys.executable, str(program), str(self.mark), str(seconds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=folder,
            env=environment,
            preexec_fn=none_ignored,
        )
        assert self.process.stdout is not None
        # Unbuffered: the line is there long before the end.
        assert self.process.stdout.readline() == b"started\n"

    def noted(self, lines: int = 0) -> list[str]:
        """What the command received, as soon as it is so many lines."""
        until = time.monotonic() + 30
        while len(noted := self.mark.read_text(encoding="utf-8").split()) < lines:
            assert time.monotonic() < until, noted
            time.sleep(0.02)
        return noted


@pytest.mark.parametrize(("send", "last"), [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT)])
def test_every_signal_reaches_the_run_once_and_the_exit_code_is_the_runs(
    tmp_path: Path, send: Callable[[int, int], None], last: signal.Signals
) -> None:
    run = Watched(tmp_path)
    noted: list[str] = []
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, last):
        send(run.process.pid, number)
        noted.append(str(int(number)))
        assert run.noted(len(noted))[: len(noted)] == noted
    out, _ = run.process.communicate(timeout=60)
    assert run.process.returncode == 42
    assert run.noted() == [*noted, "finished"]
    assert out == b"finished\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_run_survives_its_watcher(tmp_path: Path, number: signal.Signals) -> None:
    run = Watched(tmp_path, seconds=2.0)
    run.process.send_signal(number)
    assert run.noted(1) == ["finished"]
    (out,) = tmp_path.glob("trainmedic-watch-*/stdout")
    assert out.read_text(encoding="utf-8").startswith("started\nfinished\n")
    run.process.kill()
    run.process.communicate(timeout=60)


def test_what_a_run_leaves_behind_is_not_waited_for_and_its_output_is_removed(tmp_path: Path) -> None:
    left = "import subprocess, sys; print(1, flush=True); subprocess.Popen(['sleep', '30'])"
    watch = [sys.executable, "-c", START, "watch", "--", sys.executable, "-c", left]
    begun = time.monotonic()
    done = subprocess.run(watch, stdout=subprocess.PIPE, check=False, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"1\n")
    assert time.monotonic() - begun < 25
    assert list(tmp_path.iterdir()) == []


def test_nohup_stays_effective(tmp_path: Path) -> None:
    run = Watched(tmp_path, "nohup")
    os.killpg(run.process.pid, signal.SIGHUP)
    os.kill(run.process.pid, signal.SIGTERM)
    run.process.communicate(timeout=60)
    assert run.process.returncode == 42
    assert run.noted() == [str(int(signal.SIGTERM)), "finished"]


def test_standard_input_is_followed_to_its_end(
    tmp_path: Path, kto: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "input").write_text(HEALTHY + BROKEN, encoding="utf-8")
    with (tmp_path / "input").open(encoding="utf-8") as given:
        monkeypatch.setattr(sys, "stdin", given)
        assert main(["watch", "-", *kto, "--language", "en"]) == 0
    done = capsys.readouterr()
    assert done.out == ""
    assert "stdin, step 12: a loss is NaN" in done.err


def test_a_failure_of_the_diagnosis_changes_nothing_for_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("trainmedic.ui.watch.watcher.alarm", failing)
    assert main(["watch", "--", sys.executable, "-c", "print('error'); raise SystemExit(5)"]) == 5
    shown = capsys.readouterr().err
    assert "RuntimeError while the log was read" in shown
    assert "secret" not in shown
