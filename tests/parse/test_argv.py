"""The command that a launcher printed into its log."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.readers import argv
from trainmedic.kb.parse.readers.shell import Command
from trainmedic.kb.parse.source import Piece

SPAWNED = (
    "[2024-05-02 10:00:04,123] [INFO] [launch.py:253:main] process 2211 spawned with command: ['/usr/bin/python3', "
    "'-u', 'train.py', '--local_rank={}', '--model_name_or_path', 'Qwen/Qwen2-7B', '--fp16', 'True', '--note', "
    '"it\'s"]'
)
RUNNER = (
    "[2024-05-02 10:00:00,123] [INFO] [runner.py:555:main] cmd = /usr/bin/python3 -u -m deepspeed.launcher.launch "
    "--world_info=eyJs --master_port=29500 train.py --deepspeed ds.json --learning_rate 1e-5"
)
FAILED = "subprocess.CalledProcessError: Command '['/opt/bin/python', 'sft.py', '--fp16', 'True']' returned non-zero"


def read(text: str) -> tuple[Command, ...]:
    return argv.read(Piece(source="train.log", text=text))


def options(text: str) -> dict[str, object]:
    (command,) = read(text)
    return {option.key: option.value for option in command.options}


def test_a_list_of_words_is_a_command_whose_places_are_those_of_the_log() -> None:
    (command,) = read(f"starting\n{SPAWNED.format(0)}\n{SPAWNED.format(1)}")
    assert command.entry is not None
    assert command.entry.value == "train.py"
    assert (command.entry.span and command.entry.span.text) == "'train.py'"
    assert not command.partial
    named = {option.key: option for option in command.options}
    assert (named["fp16"].value, named["note"].value, named["local_rank"].value) == (True, "it's", 0)
    assert named["fp16"].span.text == "'--fp16', 'True'"
    assert (named["fp16"].span.line, SPAWNED.index("'--fp16'") + 1 + len("0") - len("{}")) == (
        2,
        named["fp16"].span.column,
    )


def test_the_line_that_the_runner_prints_is_a_command() -> None:
    found = options(f"{RUNNER}\n{SPAWNED.format(0)}")
    assert found["deepspeed"] == "ds.json"
    assert found["learning_rate"] == 1e-5


def test_a_bare_switch_has_no_value_to_point_at() -> None:
    assert options("['/a/torchrun', '--nproc_per_node', '2', 'train.py', '--do_train']")["do_train"] is True


def test_a_list_that_is_cut_off_is_partial() -> None:
    assert read("Command '['python', 'train.py', '--bf16', 'True', '--lr")[0].partial


@every_case(
    "text",
    [
        "nothing", "Target modules ['q_proj', 'v_proj'] not found", "langs = ['python', 'java']", "cmd = ls -la",
        "cmd = python setup.py install",
        "Command '['/usr/bin/python3', 'setup.py', 'bdist_wheel']' returned non-zero exit status 1.",
    ],
)  # fmt: skip
def test_what_starts_no_training_is_no_command(text: str) -> None:
    assert read(text) == ()


def test_a_failed_start_tells_which_program_it_was() -> None:
    run = parse(f"why?\n```\n{FAILED} exit status 1.\n```").run
    assert (run.framework and run.framework.value) == "trl"
    assert run.settings["fp16"].value is True


def test_a_command_of_its_own_goes_before_the_one_in_the_log() -> None:
    found = parse(f"```bash\ntorchrun sft.py --bf16 True\n```\n```\n{FAILED} exit status 1.\n```")
    assert [option.key for option in found.run.options] == ["bf16"]


def test_a_log_in_a_block_labelled_as_shell_is_a_log() -> None:
    found = parse(f"it hangs\n```shell\n{SPAWNED.format(0)}\nWatchdog caught collective operation timeout: x\n```")
    assert any(signal.kind == "nccl_timeout" and not signal.stated for signal in found.signals)
    assert found.run.settings["fp16"].value is True
