"""``trainmedic llm``: which command it starts, under which variables, and what it refuses."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from trainmedic.ui.cli import CLEAN, FAILED, USAGE, main
from trainmedic.ui.vllm import command as llm

ROOT = Path(__file__).parent.parent.parent
PROGRAM = "import sys; from trainmedic.ui.cli import main; sys.exit(main())"
FAKE = f"""#!{sys.executable}
import json, os, sys
print(json.dumps([sys.argv[1:], dict(os.environ)]))
sys.exit(7)
"""
"""Stands for vLLM: says how it was started and ends with a code of its own."""
KEY = "a-key-of-the-endpoint"


@pytest.fixture(autouse=True)
def _no_vllm_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "program", lambda: None)


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    """The words of the command that would be started."""
    before, after = ([*argv[: argv.index("--")]], [*argv[argv.index("--") :]]) if "--" in argv else ([*argv], [])
    assert main(["llm", *before, "--print", *after]) == CLEAN
    return shlex.split(capsys.readouterr().out)


def value(words: list[str], flag: str) -> str:
    (place,) = [number for number, word in enumerate(words) if word == flag]
    return words[place + 1]


def started(folder: Path, *argv: str, **variables: str) -> tuple[list[str], Mapping[str, str]]:
    """How the fake on the search path was started by the command line in a process of its own."""
    fake = folder / "bin" / "vllm"
    fake.parent.mkdir()
    fake.write_text(FAKE)
    fake.chmod(0o755)
    return ran(folder, *argv, PATH=f"{fake.parent}{os.pathsep}{os.environ['PATH']}", **variables)


def ran(folder: Path, *argv: str, **variables: str) -> tuple[list[str], Mapping[str, str]]:
    given = {name: text for name, text in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "llm", *argv],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**given, "PYTHONPATH": str(ROOT), **variables},
        timeout=60,
    )
    assert done.returncode == 7, done.stderr
    arguments, environment = json.loads(done.stdout)
    return arguments, environment


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_default_is_a_model_for_a_card_of_24_gb_with_the_context_that_is_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = printed(capsys)
    assert words[words.index("serve") + 1] == llm.MODEL
    assert value(words, "--served-model-name") == llm.MODEL
    assert value(words, "--host") == "127.0.0.1"
    assert value(words, "--port") == "8010"
    assert value(words, "--max-model-len") == "8192"
    assert value(words, "--tensor-parallel-size") == "1"
    assert value(words, "--max-num-seqs") == "64"
    assert "--enable-prefix-caching" in words
    assert json.loads(value(words, "--structured-outputs-config"))["backend"] == "xgrammar"
    assert json.loads(value(words, "--default-chat-template-kwargs")) == {"enable_thinking": False}


def test_flags_and_settings_choose_and_what_follows_two_dashes_comes_last_so_that_it_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert value(printed(capsys, "--model", str(tmp_path)), "--served-model-name") == tmp_path.name
    monkeypatch.setenv("TRAINMEDIC_MODEL_NAME", "house-model")
    monkeypatch.setenv("TRAINMEDIC_MODEL_CONTEXT_TOKENS", "32768")
    words = printed(
        capsys, "--model", "Qwen/Qwen3-32B", "--port", "9000", "--tensor-parallel", "4", "--", "--seed", "4"
    )
    assert words[words.index("serve") + 1] == "Qwen/Qwen3-32B"
    assert value(words, "--served-model-name") == "house-model"
    assert value(words, "--port") == "9000"
    assert value(words, "--tensor-parallel-size") == "4"
    assert value(words, "--max-model-len") == "32768"
    assert value(printed(capsys, "--max-model-len", "16384"), "--max-model-len") == "16384"
    assert words[-2:] == ["--seed", "4"]


@pytest.mark.parametrize(
    ("model", "tools", "reasoning"),
    [
        (llm.MODEL, "hermes", None),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "hermes", None),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "hermes", "deepseek_r1"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder", None),
        ("Qwen/Qwen3.8-27B-FP8", "qwen3_coder", None),
        ("google/gemma-4-31B-it", "gemma4", None),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3_json", None),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4_pythonic", None),
        ("mistralai/Ministral-3-14B-Instruct-2512", "mistral", None),
        ("mistralai/Ministral-3-8B-Reasoning-2512", "mistral", "mistral"),
        ("deepseek-ai/DeepSeek-V3", "deepseek_v3", None),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek_v31", None),
        ("deepseek-ai/DeepSeek-V4-Flash", "deepseek_v4", None),
        ("deepseek-ai/DeepSeek-V4.1-Flash", "deepseek_v41", None),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek_v3", "deepseek_r1"),
        ("openai/gpt-oss-20b", "openai", "openai_gptoss"),
        ("zai-org/GLM-4.6", "glm45", None),
        ("zai-org/GLM-5.2", "glm47", None),
        ("zai-org/GLM-5.3-Flash", "glm47", "glm47"),
        ("moonshotai/Kimi-K2.6", "kimi_k2", None),
        ("moonshotai/Kimi-K3", "kimi_k3", None),
        ("MiniMaxAI/MiniMax-M2.7", "minimax_m2", "minimax_m2"),
        ("MiniMaxAI/MiniMax-M3", "minimax_m3", None),
        ("allenai/Olmo-3-7B-Instruct", "olmo3", None),
        ("allenai/Olmo-3-32B-Think", "olmo3", "olmo3"),
        ("stepfun-ai/Step-3.7-Flash", "step3p5", "step3p5"),
        ("stepfun-ai/Step-5-Preview", "step5", "step5"),
        ("tencent/Hy4-preview", "hy_v4", "hy_v4"),
        ("ibm-granite/granite-4.0-h-small", "granite4", None),
    ],
)
def test_calls_of_tools_and_reasoning_are_read_in_the_form_that_the_family_writes(
    model: str, tools: str, reasoning: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = printed(capsys, "--model", model)
    assert "--enable-auto-tool-choice" in words
    assert value(words, "--tool-call-parser") == tools
    assert ("--reasoning-parser" in words) is (reasoning is not None)
    assert reasoning is None or value(words, "--reasoning-parser") == reasoning


@pytest.mark.parametrize("model", ["our/house-model", "Qwen/Qwen4-12B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"])
def test_a_family_whose_form_is_not_known_gets_no_tools_and_that_is_said(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["llm", "--model", model, "--print"]) == CLEAN
    shown = capsys.readouterr()
    assert "tool" not in shown.out
    assert model in shown.err
    assert "--tool-parser" in shown.err


def test_a_folder_of_weights_says_itself_of_which_family_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for config, parser in (('{"model_type": "gpt_oss"}', "openai"), ('{"model_type": "qwen3_5"}', "qwen3_coder")):
        (tmp_path / "config.json").write_text(config)
        assert value(printed(capsys, "--model", str(tmp_path)), "--tool-call-parser") == parser
    for damaged in ("[1]", "no json"):
        (tmp_path / "config.json").write_text(damaged)
        assert "--tool-call-parser" not in printed(capsys, "--model", str(tmp_path))


def test_the_form_of_tool_calls_can_be_chosen_and_tools_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert value(printed(capsys, "--tool-parser", "pythonic"), "--tool-call-parser") == "pythonic"
    words = printed(capsys, "--tool-parser", "none")
    assert not [word for word in words if "tool" in word]


def test_the_hub_is_asked_only_for_a_model_that_was_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "HF_HUB_OFFLINE=1" in printed(capsys)
    assert "HF_HUB_OFFLINE=1" in printed(capsys, "--model", str(tmp_path))
    named = printed(capsys, "--model", "Qwen/Qwen3-8B-AWQ")
    assert not [word for word in named if "OFFLINE" in word]
    assert "VLLM_NO_USAGE_STATS=1" in named


def test_the_key_is_not_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRAINMEDIC_MODEL_API_KEY", KEY)
    words = printed(capsys, "--host", "0.0.0.0")
    assert words[0] == "VLLM_API_KEY=..."
    assert KEY not in " ".join(words)


# --- starting it ----------------------------------------------------------------------------------------------------


def test_the_process_becomes_vllm_and_the_key_reaches_it_by_the_environment_and_no_argument(tmp_path: Path) -> None:
    given = ("--model", "Qwen/Qwen3-8B-AWQ", "--port", "9000", "--", "--seed", "3")
    arguments, environment = started(tmp_path, *given, TRAINMEDIC_MODEL_API_KEY=KEY)
    assert arguments[:2] == ["serve", "Qwen/Qwen3-8B-AWQ"]
    assert arguments[-2:] == ["--seed", "3"]
    assert value(arguments, "--port") == "9000"
    assert "HF_HUB_OFFLINE" not in environment
    assert environment["DO_NOT_TRACK"] == "1"
    assert environment["VLLM_API_KEY"] == KEY
    assert KEY not in " ".join(arguments)


def test_a_build_under_another_name_is_started_as_a_module(tmp_path: Path) -> None:
    package = tmp_path / "site" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(FAKE)
    offline = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path / 'site'}"}
    arguments, environment = ran(tmp_path, "--model", "Qwen/Qwen3-8B-AWQ", **offline)
    assert arguments[:2] == ["--model", "Qwen/Qwen3-8B-AWQ"]
    assert environment["HF_HUB_OFFLINE"] == "1", "who forbids the hub is obeyed"


# --- refusals -------------------------------------------------------------------------------------------------------


def test_where_vllm_is_absent_the_command_that_installs_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["llm"]) == FAILED
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "pip install 'trainmedic[vllm]'" in shown.err


def test_beyond_loopback_a_key_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["llm", "--host", "0.0.0.0", "--print"]) == USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "TRAINMEDIC_MODEL_API_KEY" in shown.err


@pytest.mark.parametrize(
    ("flag", "number"), [("--port", "many"), ("--tensor-parallel", "0"), ("--max-model-len", "-1")]
)
def test_numbers_are_at_least_one(flag: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["llm", f"{flag}={number}"])
    assert stop.value.code == USAGE
    assert flag in capsys.readouterr().err
