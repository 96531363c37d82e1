"""The command line: what each verb prints, what it exits with, and what it leaves alone."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.incidents import INCIDENTS, KTO_SINGLE, SWIFT_COMMAND, TRL_COMMAND, TRL_VERSIONS
from tests.live import Live
from tests.store.endpoint import Endpoint
from tests.store.knowledge import HashEmbedder, cases, glossary, rules
from trainmedic.kb import plugins
from trainmedic.kb.parse.text.condense import Room
from trainmedic.kb.store import shipped
from trainmedic.kb.store.build import prebuild
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.ui.cli import CLEAN, FAILED, FINDINGS, USAGE, main, verbs
from trainmedic.ui.cli import _input as cli_input

VERBS = tuple(sorted({*verbs(), *plugins.registered(plugins.COMMANDS)}))
PROGRAM = "import sys; from trainmedic.ui.cli import main; sys.exit(main())"
ROOT = Path(__file__).parent.parent.parent
HEALTHY = "deepspeed --module openrlhf.cli.train_dpo --pretrain Qwen/Qwen2.5-7B-Instruct --bf16 --max_len 2048\n"
LOGGED = "{'loss': 0.6931, 'grad_norm': 1.2, 'learning_rate': 1e-6, 'epoch': 0.01}\n"
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
RULE = "openrlhf-kto-vanilla-loss-single-class"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory, knowledge_folder: Path, knowledge_advisor: Advisor) -> Path:
    return Path(shutil.copytree(knowledge_folder, tmp_path_factory.mktemp("data") / "data"))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, data_dir: Path, knowledge_loaded: None) -> Path:
    """A data folder that the tests of this module share."""
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(data_dir))
    return data_dir


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.sh"
    path.write_bytes(KTO_SINGLE.encode())
    return path


def out_of(capsys: pytest.CaptureFixture[str], *argv: str, code: int = CLEAN) -> str:
    assert main(argv) == code
    return capsys.readouterr().out


def run(
    *argv: str, stdin: bytes = b"", cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=cwd or ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        timeout=60,
    )


def feed(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


# --- help and usage -------------------------------------------------------------------------------------------------


def test_the_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    shown = capsys.readouterr().out
    assert stop.value.code == CLEAN
    assert all(re.search(rf"\n    {verb}\s", shown) for verb in VERBS)


@pytest.mark.parametrize(
    "argv",
    [
        [], ["diagnose"], ["check", "a", "--diff", "--fix"], ["kb"], ["ask", "x", "--top-k", "0"],
    ],
)  # fmt: skip
def test_bad_usage_exits_with_two_and_prints_no_data(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    shown = capsys.readouterr()
    assert stop.value.code == USAGE
    assert shown.out == ""
    assert "usage: trainmedic" in shown.err


# --- check: exit codes and formats ----------------------------------------------------------------------------------


def test_a_fault_exits_with_one_and_is_shown_with_its_place(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = out_of(capsys, "check", str(script), code=FINDINGS)
    assert f"error {RULE}" in shown
    assert f"{script}:7:4: --vanilla_loss" in shown
    assert "\x1b[" not in shown


def test_only_findings_at_or_above_the_threshold_make_the_exit_code_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.sh"
    path.write_text(KTO_SINGLE.replace("--micro_train_batch_size 1", "--micro_train_batch_size 2"))
    view = json.loads(out_of(capsys, "check", str(path), "--format", "json"))
    assert {f["severity"] for f in view["findings"] if f["status"] == "fired"} >= {"warning"}
    out_of(capsys, "check", str(path), "--fail-on", "error", code=CLEAN)
    out_of(capsys, "check", str(path), "--fail-on", "warning", code=FINDINGS)
    out_of(capsys, "check", str(path), "--fail-on", "info", code=FINDINGS)


def test_json_is_the_report_of_the_contract(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = json.loads(out_of(capsys, "check", str(script), "--format", "json", code=FINDINGS))
    assert {"findings", "run", "signals", "receipt", "ruleset_version"} <= set(view)
    finding = next(f for f in view["findings"] if f["rule_id"] == RULE)
    place = {"attachment": str(script), "line": 7, "column": 4, "end_line": 7, "end_column": 18}
    assert finding["evidence"][0] == {**place, "text": "--vanilla_loss", "default": False}
    assert view["run"]["framework"] == "openrlhf"


def test_chinese_is_spoken_where_it_is_asked_for_or_the_terminal_does(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = out_of(capsys, "check", str(script), "--language", "zh", code=FINDINGS)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert out_of(capsys, "check", str(script), code=FINDINGS) == wanted
    assert "修复" in wanted


def test_standard_input_is_a_file_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, KTO_SINGLE.encode())
    assert "stdin:7:4: --vanilla_loss" in out_of(capsys, "check", "-", code=FINDINGS)


@pytest.mark.parametrize("name", ["absent.sh", ".", "no\0where"])
def test_what_cannot_be_read_exits_with_three_and_a_reason(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{tmp_path}/{name}"]) == FAILED
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("trainmedic: ")
    assert "Traceback" not in shown.err


def test_binary_and_empty_files_are_said_to_be_unread_not_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(range(256)) * 16)
    (tmp_path / "empty.yaml").write_bytes(b"")
    names = [str(tmp_path / "model.bin"), str(tmp_path / "empty.yaml")]
    view = json.loads(out_of(capsys, "check", *names, "--format", "json"))
    assert [(p["code"], p["evidence"]) for p in view["receipt"]["problems"]] == [("binary", None)]
    assert [i["read"] for i in view["receipt"]["inputs"] if i["name"]] == [False, True]
    assert main(["check", names[0]]) == FAILED
    assert capsys.readouterr().err == "trainmedic: none of the given files is readable text\n"


# --- check: fixes ---------------------------------------------------------------------------------------------------


def test_diff_shows_a_patch_and_changes_nothing(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = script.read_bytes()
    assert "-   --vanilla_loss" in out_of(capsys, "check", str(script), "--diff", code=FINDINGS)
    assert script.read_bytes() == before


def test_fix_applies_what_is_safe_and_reports_what_is_left(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed = KTO_SINGLE.replace(" \\\n   --vanilla_loss", "")
    for _ in range(2):
        assert RULE not in out_of(capsys, "check", str(script), "--fix")
        assert script.read_text() == fixed
    script.write_bytes(KTO_SINGLE.encode().replace(b"\n", b"\r\n"))
    out_of(capsys, "check", str(script), "--fix", "--exit-zero")
    assert script.read_bytes() == fixed.encode().replace(b"\n", b"\r\n")


@pytest.mark.parametrize("ending", [b"\r\n", b"\r"])
def test_fix_keeps_the_line_ends_of_the_file(ending: bytes, script: Path) -> None:
    script.write_bytes(SWIFT_COMMAND.encode().replace(b"\n", ending))
    expected = SWIFT_COMMAND.replace("--sequence_parallel_size 4", "--sequence_parallel_size 1")
    assert main(["check", str(script), "--fix", "--exit-zero"]) == CLEAN
    assert script.read_bytes() == expected.encode().replace(b"\n", ending)


ENCODINGS = {
    "utf-8 with a byte order mark": ("utf-8", b"\xef\xbb\xbf"),
    "gb18030": ("gb18030", b""),
    "utf-16 little": ("utf-16-le", b"\xff\xfe"),
    "utf-16 without a mark": ("utf-16-le", b""),
}


@pytest.mark.parametrize("case", ENCODINGS)
def test_fix_keeps_the_encoding_of_the_file(case: str, script: Path) -> None:
    encoding, mark = ENCODINGS[case]
    text = KTO_SINGLE.replace("   --vanilla_loss\n", "   --save_path 模型/中文 --vanilla_loss  # 注意\n")
    script.write_bytes(mark + text.encode(encoding))
    assert main(["check", str(script), "--fix", "--exit-zero"]) == CLEAN
    after = script.read_bytes()
    assert after.startswith(mark)
    assert "vanilla_loss" not in after[len(mark) :].decode(encoding)
    assert "--save_path 模型/中文" in after[len(mark) :].decode(encoding)


def test_fix_leaves_bytes_that_are_no_utf8_as_they_are(script: Path) -> None:
    odd = b"# caf\xe9 \xff\xfe \xe4\xb8\n"
    script.write_bytes(
        odd + KTO_SINGLE.replace("--bf16", "--save_path /x/\udcff\udce9/y --bf16").encode("utf-8", "surrogateescape")
    )
    assert main(["check", str(script), "--fix", "--exit-zero"]) == CLEAN
    after = script.read_bytes()
    assert after.startswith(odd)
    assert b"--save_path /x/\xff\xe9/y" in after
    assert b"vanilla_loss" not in after


def test_fix_leaves_secrets_as_they_are_and_prints_none(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(f"export HF_TOKEN={TOKEN}\n" + KTO_SINGLE.replace("--bf16", f"--wandb_key {TOKEN} --bf16"))
    assert main(["check", str(script), "--fix", "--exit-zero", "--format", "json"]) == CLEAN
    shown = capsys.readouterr()
    assert TOKEN not in shown.out + shown.err
    assert script.read_text().count(TOKEN) == 2
    assert "vanilla_loss" not in script.read_text()


def test_a_fix_that_changes_what_is_trained_is_never_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.sh"
    path.write_text(TRL_COMMAND)
    (tmp_path / "pip.txt").write_text(TRL_VERSIONS)
    names = [str(path), str(tmp_path / "pip.txt")]
    before = json.loads(out_of(capsys, "check", *names, "--format", "json", code=FINDINGS))
    assert any(f["patch"] and "bfloat16" in f["patch"] for f in before["findings"])
    main(["check", *names, "--fix", "--exit-zero"])
    assert "--torch_dtype float16" in path.read_text()


def test_fix_does_not_touch_standard_input_or_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "pip.txt"
    other.write_bytes(b"openrlhf==0.3.0\r\n")
    feed(monkeypatch, KTO_SINGLE.encode())
    assert "stdin:7:4" in out_of(capsys, "check", "-", str(other), "--fix", "--exit-zero")
    assert other.read_bytes() == b"openrlhf==0.3.0\r\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_cannot_be_written_exits_with_three(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.chmod(0o400)
    assert main(["check", str(script), "--fix"]) == FAILED
    assert "cannot be written" in capsys.readouterr().err


# --- ask and search -------------------------------------------------------------------------------------------------


def test_ask_json_is_the_answer_of_the_contract(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train.sh"
    path.write_bytes(KTO_SINGLE.encode())
    feed(monkeypatch, INCIDENTS[1].zh.encode("gb18030"))
    answer = json.loads(out_of(capsys, "ask", "-", "-f", str(path), "--json", "--top-k", "2"))
    assert answer["verdict"] == "answered"
    assert answer["language"] == "zh"
    assert answer["causes"][0]["case_id"] == INCIDENTS[1].case
    assert len(answer["causes"]) <= 2
    assert answer["mode"] == "deterministic"
    assert answer["notices"]


def test_a_service_is_asked_and_its_conversation_continued(
    advisor: Advisor, tmp_path: Path, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_text("correcthorse\n")
    log = tmp_path / "train.log.gz"
    log.write_bytes(gzip.compress(LOGGED.encode()))
    settings = Settings(data_dir=tmp_path, api_keys=SecretStr("correcthorse"))
    with Live(create_app(advisor, settings)) as live:
        service = ("--server", live.url, "--key", str(key))
        assert main(["ask", f"loss is nan, token {TOKEN}", "-f", str(script), "-f", str(log), "--json", *service]) == 0
        printed = capsys.readouterr()
        answer = json.loads(printed.out)
        assert printed.err == f"conversation: {answer['conversation_id']}\n"
        assert [item["lines"] for item in answer["receipt"]["inputs"] if item["name"] == str(log)] == [1]
        more = ("--conversation", answer["conversation_id"], "--json")
        followed = json.loads(out_of(capsys, "ask", "and with micro_train_batch_size 2?", *service, *more))
        assert followed["conversation_id"] == answer["conversation_id"]
        assert followed["run"]["framework"] == "openrlhf"
        assert main(["ask", "loss is nan", "--server", live.url]) == FAILED
    assert "unauthorized: a valid key is needed" in capsys.readouterr().err
    assert main(["ask", "loss is nan", "--conversation", "x"]) == USAGE


def test_the_shell_completes_verbs_and_options(tmp_path: Path) -> None:
    out, line = tmp_path / "out", "trainmedic check --fail"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(out), "COMP_LINE": line}
    environment = {**os.environ, **asked, "COMP_POINT": str(len(line))}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=60)
    assert out.read_text() == "--fail-on "


def test_search_prints_hits_with_score_and_reason(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = out_of(capsys, "search", "kto loss nan vanilla_loss", "--top-k", "3")
    hits = json.loads(out_of(capsys, "search", "kto loss nan vanilla_loss", "--top-k", "3", "--json"))
    assert hits[0]["case_id"] in shown.splitlines()[0]
    assert 1 <= len(hits) <= 3
    assert all(hit["why"] for hit in hits)
    assert json.loads(out_of(capsys, "search", "kto loss nan vanilla_loss", "--framework", "trl", "--json")) != hits


def test_a_search_or_a_question_of_nothing_is_bad_usage(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", " "]) == USAGE
    assert main(["ask", "  "]) == USAGE
    assert main(["search", "loss", "--framework", "tlr"]) == USAGE
    assert "did you mean trl?" in capsys.readouterr().err


def test_files_beside_the_checked_ones_give_their_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text(KTO_SINGLE, encoding="utf-8")
    Path("requirements.txt").write_text("openrlhf==0.3.2\n", encoding="utf-8")
    argv = ["check", "train.sh", "--with", "requirements.txt", "--with", "absent.txt", "--format", "json"]
    assert main(argv) == FINDINGS
    assert json.loads(capsys.readouterr().out)["run"]["versions"]["openrlhf"] == "0.3.2"


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "config"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (FAILED, b"trainmedic: no space left for the output\n")


# --- the index ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    """An embedder that makes an index of all pages in seconds; the default one takes a minute."""
    with Endpoint() as started:
        yield started


@pytest.fixture(scope="module")
def index_of_all_pages(endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A data folder with an index that was built by the command line, and what the command said of it."""
    data, out = tmp_path_factory.mktemp("own"), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(out):
        use_index(patched, endpoint, data)
        assert main(["index", "build"]) == CLEAN
    return data, json.loads(out.getvalue())


def use_index(monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint, data: Path) -> None:
    """The command line works on this data folder with this embedder, and without the package's own index."""
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(data))
    monkeypatch.setenv("TRAINMEDIC_EMBEDDER", "openai:bag-of-words")
    monkeypatch.setenv("TRAINMEDIC_EMBEDDER_BASE_URL", endpoint.url)
    monkeypatch.setattr(shipped, "index", lambda: data / "none")


@pytest.fixture
def own_index(
    index_of_all_pages: tuple[Path, Any], endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """A copy of that folder in ``tmp_path / "own"``, which the command line uses with the same embedder."""
    data, built = index_of_all_pages
    use_index(monkeypatch, endpoint, Path(shutil.copytree(data, tmp_path / "own")))
    return built


def test_an_index_is_built_verified_and_shown(
    own_index: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = own_index | {"root": str(tmp_path / "own" / "index")}
    assert json.loads(out_of(capsys, "index", "status")) == built
    assert json.loads(out_of(capsys, "index", "verify")) == built
    assert built["in_use"] == built["manifest"]["id"]
    damaged = next((tmp_path / "own" / "index" / built["in_use"]).glob("*.npy"))
    damaged.write_bytes(b"\0" + damaged.read_bytes()[1:])
    capsys.readouterr()
    assert main(["index", "verify"]) == FAILED
    assert damaged.name in capsys.readouterr().err


def test_the_status_says_whether_the_index_is_older_than_the_pages(
    own_index: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not own_index["older_than_pages"]
    page = next((Path(__file__).parents[2] / "kb" / "causes").rglob("openrlhf-kto-vanilla-loss-nan.md"))
    text = page.read_text(encoding="utf-8").replace(f"id: {page.stem}", "id: our-own-incident", 1)
    (tmp_path / "our-own-incident.md").write_text(text, encoding="utf-8")
    monkeypatch.setenv("TRAINMEDIC_KB_PATHS", str(tmp_path / "our-own-incident.md"))
    before = json.loads(out_of(capsys, "index", "status"))
    assert (before["in_use"], before["older_than_pages"]) == (own_index["in_use"], True)
    after = json.loads(out_of(capsys, "index", "build"))
    assert (after["in_use"] == own_index["in_use"], after["older_than_pages"]) == (False, False)


def test_verify_checks_the_packages_own_index_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(shipped, "index", lambda: package)
    made = prebuild(cases(), rules(), glossary(), HashEmbedder(), package)
    assert json.loads(out_of(capsys, "index", "verify"))["prebuilt"] == made.id
    (package / "terms.json").write_text("{}")
    assert main(["index", "verify"]) == FAILED
    assert "terms.json is not what its manifest says" in capsys.readouterr().err
    monkeypatch.setattr(shipped, "index", lambda: tmp_path / "none")
    assert main(["index", "verify"]) == FAILED, "there is none at all"


# --- the knowledge --------------------------------------------------------------------------------------------------


def test_the_knowledge_is_listed_by_kind_and_language(capsys: pytest.CaptureFixture[str]) -> None:
    everything = out_of(capsys, "kb", "list").splitlines()
    rules = out_of(capsys, "kb", "list", "--kind", "rules").splitlines()
    assert [line for line in everything if line.startswith("rule  ")] == rules
    assert any(line.startswith(f"rule  {RULE}  ") for line in rules)
    assert out_of(capsys, "kb", "list", "--kind", "rules", "--language", "zh").splitlines() != rules


def test_pages_are_shown_as_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    defect = out_of(capsys, "kb", "list", "--kind", "defects").split("  ")[1]
    for name, language in (
        (INCIDENTS[0].case, "zh"),
        (RULE, "en"),
        ("update-blow-up.clipping-off", "zh"),
        (defect, "en"),
    ):
        shown = out_of(capsys, "kb", "show", name, "--language", language)
        assert shown.startswith("# ")
        assert any("\u4e00" <= c <= "\u9fff" for c in shown) is (language == "zh")
    assert main(["kb", "show", "no-such-page"]) == FAILED
    assert "kb list" in capsys.readouterr().err


NEW = (
    *("kb", "new", "--seen", "The model never stops after SFT with packing", "--releases", "trl ? 0.12.0"),
    *("--run", "trl sft --model_name_or_path m --dataset_name d [[--packing]]", "--why", "The end token is cut off."),
    *("--source", "https://github.com/huggingface/trl/issues/1"),
)


def test_a_new_page_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trl").mkdir()
    other = (*NEW, "--folder", str(tmp_path / "trll"))
    assert main([*other]) == USAGE
    assert "did you mean 'trl'?" in capsys.readouterr().err
    page = Path(out_of(capsys, *other, "--new-folder").strip())
    assert (page.parent.name, page.name) == ("trll", "trl-model-never-stops-sft-packing.md")
    text = page.read_text(encoding="utf-8")
    assert main([*other]) == USAGE
    assert page.read_text(encoding="utf-8") == text
    new = ("kb", "new", "mechanism", "my-page", "--folder", str(tmp_path))
    assert out_of(capsys, *new).strip().endswith("my-page.md")
    assert "id: my-page" in (tmp_path / "my-page.md").read_text(encoding="utf-8")


def test_what_no_flag_answers_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "trl sft --dataset_name d \\\n  [[--packing]]\n\nThe end token is cut off.\nTrain without packing.\n\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    asked = [
        flag for pair in zip(NEW[2::2], NEW[3::2], strict=True) if pair[0] not in ("--run", "--why") for flag in pair
    ]
    page = Path(out_of(capsys, "kb", "new", *asked, "--folder", str(tmp_path)).strip())
    assert "Upgrade to trl 0.12.0 or newer. Train without packing." in page.read_text(encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["kb", "new", *asked, "--folder", str(tmp_path)]) == USAGE
    assert "3/5" in capsys.readouterr().err


def test_answers_that_cannot_be_used_are_given_back_as_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*NEW]
    asked[asked.index("--releases") + 1] = "trl ? ?"
    assert main([*asked, "--folder", str(tmp_path)]) == USAGE
    told = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("with your answers: "))
    again = shlex.split(told.removeprefix("with your answers: trainmedic "))
    again[again.index("--releases") + 1] = NEW[NEW.index("--releases") + 1]
    assert out_of(capsys, *again, "--folder", str(tmp_path)).strip().endswith(".md")


def test_help_lists_every_verb_with_those_for_a_run_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    (\w+)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    assert (listed[:3], sorted(listed)) == (["check", "ask", "doctor"], sorted(VERBS))


def test_lint_checks_the_given_pages_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out_of(capsys, *NEW, "--folder", str(tmp_path))
    one = tmp_path / "trl-model-never-stops-sft-packing.md"
    text = one.read_text(encoding="utf-8")
    one.write_text(text.replace("family: configuration", "family: configuratoin"), encoding="utf-8")
    (tmp_path / "two.md").write_text(text, encoding="utf-8")
    lines = out_of(capsys, "kb", "lint", str(one), code=FINDINGS).splitlines()
    assert lines
    assert all(line.startswith(f"{one}:") for line in lines)
    assert main(["kb", "lint", "no-such-page.md"]) == USAGE
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "bad-page.md").write_text("---\nid: bad-page\nfamily: data\n---\n", encoding="utf-8")
    found = out_of(capsys, "kb", "lint", "--kb", str(tmp_path / "bad"), code=FINDINGS)
    assert found == "bad/bad-page.md:2: field 'title' is missing\n"


@pytest.mark.parametrize("name", ["../up", "With-Capitals", "", "-x"])
def test_a_page_id_that_is_none_is_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    with contextlib.suppress(SystemExit):
        assert main(["kb", "new", "cause", name, "--folder", str(tmp_path / "in"), "--new-folder"]) == USAGE
    assert not (tmp_path / "in").exists()


# --- settings -------------------------------------------------------------------------------------------------------


def test_config_shows_every_setting_and_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("hunter2hunter2\n")
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", str(keys))
    monkeypatch.setenv("TRAINMEDIC_DATABASE_URL", "postgresql://me:correcthorse@db/x")
    monkeypatch.setenv("TRAINMEDIC_CONCURRENCY", "7")
    text = out_of(capsys, "config")
    shown = json.loads(out_of(capsys, "config", "--json"))
    assert "hunter2" not in text + str(shown)
    assert "correcthorse" not in text + str(shown)
    assert shown["api_keys"] == shown["database_url"] == "********"
    assert (shown["concurrency"], shown["pages"], shown["config_file"]) == (7, True, None)
    assert [line.split(" = ")[0] for line in text.splitlines()] == list(shown)


def test_config_names_the_file_that_was_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "medic.toml"
    file.write_text('concurrency = 3\n[slack_channels.C1]\nanswers = "all"\n')
    monkeypatch.setenv("TRAINMEDIC_CONFIG", str(file))
    shown = json.loads(out_of(capsys, "config", "--json"))
    assert (shown["config_file"], shown["concurrency"]) == (str(file), 3)
    assert shown["slack_channels"]["C1"]["answers"] == "all"


def test_serving_beyond_this_machine_without_a_key_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", "0.0.0.0"]) == USAGE
    assert "without a key" in capsys.readouterr().err


# --- files too large to hold ----------------------------------------------------------------------------------------


def test_the_middle_of_a_huge_file_is_left_out_but_its_lines_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_input, "MAX_BYTES", 64)
    monkeypatch.setattr(cli_input, "ROOM", Room(head=40, between=40, tail=40))
    lines = [f"line {number:03}".encode() for number in range(100)]
    path = tmp_path / "big.log"
    path.write_bytes(b"\n".join(lines))
    kept = cli_input.content(str(path)).splitlines()
    assert len(kept) == 100
    assert kept[:3] == lines[:3]
    assert kept[-3:] == lines[-3:]
    assert kept[50] == b""
    path.write_bytes(b"x" * 64)
    assert cli_input.content(str(path)) == b"x" * 64, "within the bound a file is read whole"


# --- whole processes ------------------------------------------------------------------------------------------------


def test_a_terminal_that_knows_ascii_only_still_gets_json(script: Path) -> None:
    done = run("check", str(script), "--format", "json", "--language", "zh", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == FINDINGS
    assert any("\u4e00" <= c <= "\u9fff" for c in json.loads(done.stdout)["findings"][0]["message"])


def test_a_file_name_that_is_no_utf8_is_shown_escaped(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/tr\xff\xe9in.sh"
    Path(os.fsdecode(name)).write_text(KTO_SINGLE)
    for output in ("text", "sarif"):
        done = run("check", os.fsdecode(name), "--format", output)
        assert done.returncode == FINDINGS, done.stderr
        assert b"Traceback" not in done.stderr
        if output == "sarif":
            json.loads(done.stdout)


def test_a_reader_that_goes_away_is_no_failure(script: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", PROGRAM, "check", str(script), "--format", "json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, cwd=ROOT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (CLEAN, b"")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def server(kept: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_port()
    argv = [sys.executable, "-c", PROGRAM, "serve", "--port", str(port)]
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    yield process, port
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_serve_answers_until_it_is_told_to_stop(server: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = server
    deadline = time.monotonic() + 120
    for path, begins in (("livez", b'{"status":"ok"'), ("zh/", b"<!doctype html>")):  # the pages come last
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as response:
                    assert response.read().lower().startswith(begins)
                    break
            except OSError:
                assert process.poll() is None, process.communicate()[1].decode()
                assert time.monotonic() < deadline
                time.sleep(0.1)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/gradio_api/heartbeat/an-open-page", timeout=20) as page:
        assert b"ALIVE" in page.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
    assert process.returncode == CLEAN
    assert out == b""
    assert f"http://127.0.0.1:{port}".encode() in err
    assert b"Traceback" not in err


def test_a_port_that_is_taken_is_one_line_before_anything_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == FAILED
    told = capsys.readouterr().err
    assert told.startswith(f"trainmedic: cannot listen on 127.0.0.1:{port} (")
    assert "choose another with --port" in told
    assert len(told.splitlines()) == 1
