"""Where one thing ends in a message and the next begins."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.source import Piece
from trainmedic.kb.parse.text.segment import Block, segment

KTO = "deepspeed --module openrlhf.cli.train_kto \\\n   --micro_train_batch_size 1 \\\n   --vanilla_loss"
YAML = "stage: kto\nmodel_name_or_path: Qwen/Qwen2-7B\nlora:\n  rank: 8\n# quiet\n\nlearning_rate: 1e-6"
JSON = '{\n  "zero_optimization": {"stage": 3},\n  "bf16": {"enabled": true}\n}'
PYTHON = "from trl import DPOConfig\n\nargs = DPOConfig(\n    beta=0.1,\n)\ntrainer = DPOTrainer(model, args)"
LOG = "{'loss': 0.69, 'grad_norm': 1.0, 'epoch': 0.1}\n{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.2}"
TRACE = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    main()\nRuntimeError: CUDA error'
PIP = "Package Version\n------- -------\ntrl     0.12.0\ntorch   2.5.1"
INI = "[train]\nlr = 1\nepochs = 2"
TOML = '[train]\nlr = 1\nmodel = "a"'
CSV = "step,loss,lr\n1,0.5,1e-6\n2,0.4,1e-6"
DUMP = "TrainingArguments(\n_n_gpu=1,\nbf16=True,\n)"


def blocks(text: str, name: str | None = None) -> tuple[Block, ...]:
    return segment(Piece(source=name, text=text), name=name)


def kinds(text: str, name: str | None = None) -> list[str]:
    return [block.kind for block in blocks(text, name)]


@every_case(
    ("kind", "text"),
    [
        ("command", KTO), ("yaml", YAML), ("json", JSON), ("python", PYTHON), ("log", LOG), ("log", TRACE),
        ("versions", PIP), ("ini", INI), ("toml", TOML), ("metrics", CSV), ("dump", DUMP),
    ],
)  # fmt: skip
@every_case("prose", ["My run breaks, this is what I use here for it:", "训练的时候 loss 变成 nan，配置如下："])
def test_each_kind_is_found_without_fences(kind: str, text: str, prose: str) -> None:
    found = blocks(f"{prose}\n\n{text}\n\n{prose}\n")
    assert [block.kind for block in found] == ["prose", kind, "prose"]
    assert found[1].piece.text.strip() == text
    assert found[1].piece.line == 3


def test_several_kinds_in_one_message() -> None:
    text = "\n\n".join(
        ["Help me please, I am lost with it.", KTO, "The log then says the following thing:", LOG, YAML, TRACE]
    )
    assert kinds(text) == ["prose", "command", "prose", "log", "yaml", "log"]


@every_case(
    ("info", "text", "kind"),
    [
        ("bash", KTO, "command"), ("yaml", YAML, "yaml"), ("json", JSON, "json"), ("python", PYTHON, "python"),
        ("log", LOG, "log"), ("", KTO, "command"), ("", YAML, "yaml"), ("", JSON, "json"), ("text", LOG, "log"),
        ("toml", TOML, "toml"), ("ini", INI, "ini"), ("csv", CSV, "metrics"), ("yaml", KTO, "command"),
        ("bash", JSON, "json"), ("python", KTO, "command"), ("bash train.sh", KTO, "command"),
        ("", "just words", "log"), ("{.yaml}", YAML, "yaml"),
        ("", '{"loss": 1, "step": 1}\n{"loss": 2, "step": 2}', "metrics"), ("", "#!/bin/bash\nls", "command"),
        ("md", YAML, "yaml"), ("diff", "- a\n+ b", "log"), ("bash", "ls", "command"),
    ],
)  # fmt: skip
def test_fences_are_read_by_label_and_content(info: str, text: str, kind: str) -> None:
    found = blocks(f"see\n```{info}\n{text}\n```\nthanks")
    assert [block.kind for block in found] == ["prose", kind, "prose"]
    assert found[1].piece.text.strip() == text
    assert found[1].piece.line == 3


@every_case("mark", ["```", "~~~", "````"])
def test_a_fence_that_never_ends_runs_to_the_end(mark: str) -> None:
    found = blocks(f"see\n{mark}bash\n{KTO}\n")
    assert [(block.kind, block.closed) for block in found] == [("prose", True), ("command", False)]


def test_text_on_a_fences_own_lines_belongs_to_the_body() -> None:
    found = blocks("```export A=1\ntorchrun train.py --lr 1```\nand so on")
    assert [block.kind for block in found] == ["command", "prose"]
    assert found[0].piece.text == "export A=1\ntorchrun train.py --lr 1"
    assert (found[0].piece.line, found[0].piece.column) == (1, 4)


def test_an_empty_fence_is_nothing() -> None:
    assert kinds("```\n\n```\n") == []


@every_case("above", ["train.yaml:", "the file `train.yaml` is\n"])
def test_the_name_above_a_fence_is_the_files_name(above: str) -> None:
    assert blocks(f"{above}\n```\n{YAML}\n```")[-1].name == "train.yaml"
    assert blocks(f"```yaml train.yaml\n{YAML}\n```")[-1].name == "train.yaml"


def test_a_long_sentence_above_a_fence_names_no_file() -> None:
    assert (
        blocks(
            "I changed many things in train.yaml because of what the manual says about all of them\n```\na_b: 1\n```"
        )[-1].name
        == ""
    )


def test_quoted_replies_and_indented_fences_lose_their_marks() -> None:
    found = blocks("> ```yaml\n> stage: kto\n> lora_rank: 8\n> ```\n")
    assert found[-1].piece.text.strip() == "stage: kto\nlora_rank: 8"
    span = found[-1].piece.span(0, 5)
    assert (span.line, span.column) == (2, 3)
    assert blocks("  ```yaml\n  a_b: 1\n  ```")[0].piece.text.strip() == "a_b: 1"


@every_case(
    "text",
    [
        "$ swift rlhf \\\n>   --rlhf_type dpo \\\n>   --beta 0.1",
        "(base) me@host:~/x$ swift rlhf --rlhf_type dpo",
        "!swift rlhf --rlhf_type dpo",
        "+ swift rlhf --rlhf_type dpo",
        "root@a1b2:/workspace# swift rlhf --rlhf_type dpo",
        "```console\n$ swift rlhf --rlhf_type dpo\n```",
        "I run `swift rlhf --rlhf_type dpo` on 4 GPUs",
    ],
)
def test_prompts_are_taken_off(text: str) -> None:
    found = next(block for block in blocks(text) if block.kind == "command")
    assert found.piece.text.startswith("swift rlhf")
    assert ">" not in found.piece.text
    start = found.piece.span(0, 5)
    assert text.split("\n")[start.line - 1][start.column - 1 : start.end_column - 1] == "swift"


@every_case(
    "text",
    [
        "deepspeed zero3 makes my loss nan", "python version 3.10 is what I use",
        "swift sft 训练的时候 loss 是 nan 怎么办", "trl 0.12 and torch 2.5",
        "Note: this happens only on A100 cards here", "http://example.org: see there", "Environment: A100",
        "the flag --vanilla_loss does not help at all", "Why does this happen? I do not understand it.", "环境：A100",
        "--- a rule", "I set [model] and then", "{not json}", "foo(bar) = baz?", "export it",
    ],
)  # fmt: skip
def test_prose_stays_prose(text: str) -> None:
    assert kinds(text) == ["prose"]


@every_case(
    ("name", "text", "kind"),
    [
        ("train.sh", KTO, "command"), ("a/b.yaml", YAML, "yaml"), ("ds.json", JSON, "json"),
        ("train.py", PYTHON, "python"), ("a.toml", TOML, "toml"), ("a.cfg", INI, "ini"), ("m.csv", CSV, "metrics"),
        ("m.jsonl", "{}\n{}", "metrics"), ("m.json", '{"a": 1}\n{"a": 2}', "metrics"),
        ("requirements.txt", "trl==0.12", "versions"), ("train.log", LOG, "log"), ("config", JSON, "json"),
        ("notes.txt", YAML, "yaml"), ("run.yaml", KTO, "command"), ("Dockerfile", "FROM x", "log"),
        ("x.md", "words", "prose"), ("slurm-1.out", TRACE, "log"), ("empty.txt", "a", "prose"),
        ("run", "#!/bin/sh\nls", "command"),
    ],
)  # fmt: skip
def test_attachments_are_read_by_name_and_content(name: str, text: str, kind: str) -> None:
    assert kinds(text, name) == [kind]


def test_what_a_log_prints_is_found_in_it() -> None:
    found = blocks(f"[INFO] start\n+ {KTO}\n[INFO] args\n{DUMP}\n{LOG}\n", "train.log")
    assert [block.kind for block in found] == ["log", "command", "log", "dump", "log"]
    assert all(block.name == "train.log" for block in found)


def test_json_after_words_on_the_same_line() -> None:
    found = blocks('my config is {\n "zero_optimization": {"stage": 2}\n}\nthanks a lot for your help')
    assert [block.kind for block in found] == ["prose", "json", "prose"]
    assert (found[1].piece.line, found[1].piece.column) == (1, 14)


@every_case(
    "text", ['{\n "a": 1,\n "b": {"c": 2', '{\n "a": 1,\n\nI do not know why this one does happen', '{"a": {"b": 1}}']
)
def test_json_cut_off_anywhere_is_json(text: str) -> None:
    assert kinds(text)[0] == "json"


def test_a_script_is_one_stretch() -> None:
    script = (
        "#!/bin/bash\nset -x\nexport A=1\nDATA=(\n  a.b=1\n)\n\nif [ -z $1 ]; then\n  N=2\n"
        "fi\nread -r -d '' C <<EOF\nx.y --z\nEOF\n\ndeepspeed --module $C \\\n  --j '{\n"
        '"a": 1}\'\n'
    )
    assert kinds(script) == ["command"]


def test_exports_alone_are_a_command_and_other_shell_lines_are_not() -> None:
    assert kinds("export NCCL_DEBUG=INFO\nexport B=2") == ["command"]
    assert set(kinds("cd /data\nls")) == {"prose"}


@pytest.mark.slow
def test_text_without_line_breaks_of_any_length_is_read_in_linear_time() -> None:
    def seconds(count: int) -> float:
        text = (
            (f"{YAML}\n\n{KTO}\n\n{LOG}\nsome words that say nothing in particular here\n" * count)
            + "{" * count
            + "a: b " * count
        )
        began = time.thread_time()
        blocks(text)
        return time.thread_time() - began

    seconds(10)
    # A slow moment of the machine is no growth: it does not come three times running.
    assert any(seconds(1000) < 40 * max(seconds(100), 0.01) for _ in range(3))


LINES = st.sampled_from(
    [
        *"\n".join((KTO, YAML, JSON, PYTHON, LOG, TRACE, PIP, INI, CSV, DUMP)).split("\n"),
        *("# --a 1 \\", "`swift sft --a 1 \\", "--b 2`", "```", "```bash", "~~~", "> ```", "", "  ", "words"),
        *("变成 nan", "A=(", "cat > x.json <<EOF", "EOF", "'", '"', "$ ", "> x"),
    ]
)


@given(st.lists(LINES, max_size=20).map("\n".join), st.sampled_from([None, "a.log", "a.txt", "a.md"]))
def test_stretches_are_in_order_do_not_overlap_and_hold_the_users_text(text: str, name: str | None) -> None:
    lines = text.split("\n")
    last = (1, 1)
    for block in blocks(text, name):
        span = block.piece.span(0, len(block.piece.text))
        begin = sum(len(line) + 1 for line in lines[: span.line - 1]) + span.column - 1
        end = sum(len(line) + 1 for line in lines[: span.end_line - 1]) + span.end_column - 1
        assert text[begin:end] == span.text
        assert (span.line, span.column) >= last
        last = (span.line, span.column)


WIDE = "I have been changing this flag all the time and nothing helps"


@every_case(
    ("text", "found"),
    [
        (f"--beta {WIDE}", ["prose"]),
        (f"see `learning_rate=5e-7` in the file, {WIDE}", ["prose"]),
        (f"see `swift sft --model a/b` in the file, {WIDE}", ["command", "prose"]),
        (f"{KTO}\n\n\n\n\n\n{KTO}", ["command", "command"]),
        (f"{YAML}\n\n\n\n\nbeta: 0.1\nlr_scheduler_type: cosine", ["yaml", "yaml"]),
        (f"{PYTHON}\n\n\n\n\nimport torch", ["python", "python"]),
        (f"import torch\n{LOG}", ["python", "log"]),
        ("swift sft --model 'a\n\nb: 1\nc: 2", ["command", "yaml"]),
        (f"stage: kto\nlora_target:\n  - q_proj\n  - v_proj\n{WIDE}", ["yaml", "prose"]),
        (f"a: 1\nb: 2\nresults of it\n\n{WIDE}", ["yaml", "prose"]),
        ("import torch\nif you think about it then this is all wrong", ["python", "prose"]),
        ('{"a set", "of words"}', ["prose"]),
        ("{\n  just words\n}", ["prose"]),
        ('{"loss": 0.5, "step": 1}', ["metrics"]),
        ("[INFO] parse_TrainingArguments(x) was called", ["prose"]),
        ("[INFO] args: TrainingArguments(bf16=True, lr=1)\nmore", ["prose", "python", "prose"]),
        (f"args = DPOConfig(\n    beta=0.1,\n{'x = (' * 3}\n" + "    y,\n" * 2100, ["python"]),
        (f"import torch\n\nimport trl\n\n{WIDE}", ["python", "prose"]),
        (f"cat > a.json <<EOF\n{WIDE}\n{KTO}", ["command"]),
        ('see File "a.py", line 1\n  File "a.py", line 1, in f\n    x = f(bf16=True)', ["prose"]),
    ],
)
def test_stretches_end_where_a_reader_would_say_so(text: str, found: list[str]) -> None:
    assert kinds(text) == found


def test_a_section_may_end_with_the_text_or_with_other_words() -> None:
    assert kinds(INI) == ["ini"]
    assert kinds(f"{INI}\n{WIDE}") == ["ini", "prose"]


@every_case(
    "facts",
    [
        "model: Qwen2-7B\nnum_params: 7000000000\ntrainable: 1000",
        "seed: 42\nwandb: Tracking run\nworld_size: 8\ngpu_memory: 40GB",
        "loss_type: sigmoid\nlearning_rate: 1e-6\nbeta: 0.1",
        "epoch: 1\nloss: nan\nlr: 1e-6",
    ],
)
def test_a_few_lines_in_a_log_that_state_facts_are_no_yaml(facts: str) -> None:
    assert set(kinds(f"[INFO] start\n{facts}\n{LOG}\n", "run.log")) == {"log"}
    assert kinds(f"see\n```log\n{facts}\n```")[1:] == ["log"]
    assert set(kinds(f"see\n```\n{LOG}\n{facts}\n```")[1:]) == {"log"}


def test_a_configuration_that_was_printed_into_a_log_is_still_yaml() -> None:
    found = blocks(f"+ cat train.yaml\n{YAML}\n[INFO] start\n", "run.out")
    assert [block.kind for block in found] == ["log", "yaml", "log"]
    assert found[1].piece.line == 2
    nested = "model:\n  name: qwen\ndata:\n  path: x\nseed: 1\nworkers: 2"
    assert kinds(f"[INFO] start\n{nested}\n[INFO] on", "run.log") == ["log", "yaml", "log"]


def test_metrics_one_per_line_are_a_log_and_settings_above_them_are_not() -> None:
    assert kinds("epoch: 1\nloss: nan\nlr: 1e-6\n") == ["log"]
    assert kinds("learning_rate: 1e-6\nloss: 0.58\n") == ["log"]
    found = blocks("stage: sft\nlearning_rate: 1e-5\n\ngrad_norm: 0.1\nloss: 0.0\n")
    assert [block.kind for block in found] == ["yaml", "log"]
    assert found[0].piece.text.split() == ["stage:", "sft", "learning_rate:", "1e-5"]
    assert kinds(f"{YAML}\nloss: 0.5\nbf16: true") == ["yaml"]


@every_case(
    ("text", "column"),
    [
        ("here is the command: deepspeed --module openrlhf.cli.train_kto --bf16", 22),
        ("loss nan，命令：accelerate launch train.py --bf16", 13),
    ],
)
def test_a_command_behind_words_and_a_colon_is_read_at_its_place(text: str, column: int) -> None:
    assert kinds(text) == ["prose", "command"]
    assert blocks(text)[1].piece.text == text[column - 1 :]
    option = next(each for each in parse(text).run.options if each.key == "bf16")
    assert (option.span.column, option.value) == (text.index("--bf16") + 1, True)


@every_case("first", ["image: torch\n", ""])
def test_a_yaml_key_with_a_command_stays_yaml(first: str) -> None:
    assert kinds(f"{first}command: deepspeed --module openrlhf.cli.train_kto --bf16\nreplicas: 2\n") == ["yaml"]


def test_what_the_user_says_in_chinese_behind_an_error_is_his_own_words() -> None:
    text = f"ValueError: remaining_argv: ['--train_type', 'sft']\nswift版本： 2.6.1\n运行脚本：\n{KTO}"
    assert kinds(text) == ["log", "prose", "command"]
    assert parse(text).versions["ms-swift"].exact == "2.6.1"


@every_case("line", ["    # --freeze_vit true \\", "# --bf16 \\"])
def test_an_option_that_is_commented_out_begins_no_command(line: str) -> None:
    assert "command" not in kinds(line)
    assert kinds(f"{KTO} \\\n{line}\n")[0] == "command"
    assert kinds(f"see\n```\n{line}\n{KTO}\n```")[-1] == "command"


def test_comments_do_not_end_a_script() -> None:
    comments = "\n    # --packing_samples\n    # --use_wandb [TOKEN]\n    # --remote_rm_url http://x\n"
    text = (
        f"set -x\nread -r -d '' cmd <<EOF\n{KTO.partition(' --module ')[2]}\nEOF\n{comments}\ndeepspeed --module $cmd"
    )
    assert kinds(f"my script\n```\n{text}\n```") == ["prose", "command"]
    assert parse(f"my script\n```\n{text}\n```").run.framework is not None


@every_case("before", ["", "set -x\n\n", "CUDA_VISIBLE_DEVICES=0,1 \\\n"])
def test_inline_code_over_several_lines_is_a_command_without_its_marks(before: str) -> None:
    text = f"command:\n`{before}{KTO}`\nwhy?"
    assert kinds(text) == ["prose", "command", "prose"]
    assert blocks(text)[1].piece.text == f"{before}{KTO}"
    assert [option.key for option in parse(text).run.options][-1] == "vanilla_loss"
