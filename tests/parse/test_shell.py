"""Commands as people paste them."""

from __future__ import annotations

import time

import pytest

from tests.every_case import every_case
from trainmedic.kb.model.run import Option, Origin, Unresolved, Value
from trainmedic.kb.parse.readers import shell
from trainmedic.kb.parse.readers.shell import Command, Script
from trainmedic.kb.parse.source import Piece


def read(text: str) -> Script:
    return shell.read(Piece(source=None, text=text))


def only(text: str) -> Command:
    commands = read(text).commands
    assert len(commands) == 1
    return commands[0]


def values(command: Command, scope: str | None = "") -> dict[str, Value]:
    return {o.key: o.value for o in command.options if scope is None or o.scope == scope}


def option(text: str, key: str) -> Option:
    return next(o for c in read(text).commands for o in c.options if o.key == key)


def codes(text: str) -> list[str]:
    return [problem.code for problem in read(text).problems]


@every_case(
    ("text", "launcher", "entry"),
    [
        ("deepspeed --module openrlhf.cli.train_kto --beta 0.1", "deepspeed", "openrlhf.cli.train_kto"),
        ("deepspeed --include localhost:0,1 ../train_kto.py --beta 0.1", "deepspeed", "../train_kto.py"),
        ("deepspeed --num_gpus 4 --module=openrlhf.cli.train_dpo --beta 1", "deepspeed", "openrlhf.cli.train_dpo"),
        ("torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer a.b=1", "torchrun", "verl.trainer.sft_trainer"),
        ("torchrun --standalone train.py --lr 1", "torchrun", "train.py"),
        ("torchrun --unknown train.py --lr 1", "torchrun", "train.py"),
        ("/opt/conda/bin/torchrun --nnodes 2 train.py", "torchrun", "train.py"),
        ("accelerate launch --config_file z3.yaml -m axolotl.cli.train c.yml", "accelerate", "axolotl.cli.train"),
        ("accelerate launch --num_processes 8 kto.py --beta 0.1", "accelerate", "kto.py"),
        ("python3 -m openrlhf.cli.train_ppo_ray --lr 1", "python", "openrlhf.cli.train_ppo_ray"),
        ("python -u -X dev train.py --lr 1", "python", "train.py"),
        ("python -m torch.distributed.run --nproc_per_node 2 train.py --lr 1", "torchrun", "train.py"),
        ("python -m torch.distributed.launch --use_env", "torchrun", None),
        ("python swift rlhf --rlhf_type kto", None, "swift rlhf"),
        ("python /usr/bin/torchrun --nnodes 1 x.py --lr 1", "torchrun", "x.py"),
        ("torchrun --nnodes 1 python -m trl.scripts.dpo --lr 1", "torchrun", "trl.scripts.dpo"),
        ("swift rlhf --rlhf_type kto", None, "swift rlhf"),
        ("llamafactory-cli train x.yaml", None, "llamafactory-cli train"),
        ("trl dpo --config x.yaml", None, "trl dpo"),
        ("axolotl train c.yml --launcher torchrun", None, "axolotl train"),
        ("swift --help", None, "swift"),
        (
            "uv run --isolated --extra megatron python -m skyrl.train.main_sft model.path=m",
            "python",
            "skyrl.train.main_sft",
        ),
        (
            "uv run --isolated --extra vllm -m skyrl_train.entrypoints.main_base trainer.epochs=2",
            None,
            "skyrl_train.entrypoints.main_base",
        ),
        ("tune run --nnodes 1 --nproc_per_node 2 lora_dpo --config a/b lr=1", "torchrun", "tune run lora_dpo"),
        ("tune run lora_dpo --config a/b lr=1", "torchrun", "tune run lora_dpo"),
        ("tune run --nproc_per_node 2", None, "tune run"),
        ("tune download meta/m --output-dir /m", None, "tune download"),
        (
            "ray job submit --address=http://h:1 -- python3 -m verl.trainer.main_ppo a.b=1",
            "ray",
            "verl.trainer.main_ppo",
        ),
        ("srun --gres=gpu:8 torchrun --nnodes 2 train.py --lr 1", "torchrun", "train.py"),
        ("srun -n 1 python train.py --lr 1", "python", "train.py"),
        ("srun -n 1 ./train.py --lr 1", "srun", "./train.py"),
        ("nohup python train.py --lr 1 > a.log 2>&1 &", "python", "train.py"),
        ("docker run --gpus all img torchrun --nnodes 1 t.py --lr 1", "torchrun", "t.py"),
        ("openrlhf.cli.train_dpo --beta 0.1", None, "openrlhf.cli.train_dpo"),
        ("./train.py --lr 1", None, "./train.py"),
        ("mytrainer --model a --dataset b --lr 1", None, "mytrainer"),
        ("--learning_rate 1e-6 --bf16", None, None),
        ("deepspeed --num_gpus 8", "deepspeed", None),
    ],
)
def test_launcher_and_program_are_told_apart(text: str, launcher: str | None, entry: str | None) -> None:
    command = only(text)
    assert command.launcher == launcher
    assert (command.entry.value if command.entry else None) == entry


@every_case(
    "text",
    [
        "cd /data", "pip install trl==0.12", "python -c 'print(1)'", "python", "python setup.py install",
        "accelerate config", "ls --all", "accelerate", "srun hostname", "ray start --head",
        "ray job submit --no-wait", "echo hi | tee x", "docker run img", "torchrun --nnodes 1 python -c 'print(1)'",
        "bash -c ls", "python /opt/conda/bin/accelerate config", "$EMPTY_AT_FIRST", '"$@"', "",
    ],
)  # fmt: skip
def test_what_starts_no_training_is_no_command(text: str) -> None:
    assert read(text).commands == ()


def test_flags_before_the_program_belong_to_the_launcher() -> None:
    command = only("deepspeed --num_gpus 8 --module openrlhf.cli.train_kto --beta 0.1")
    assert values(command, "launcher") == {"num_gpus": 8, "module": True}
    assert values(command) == {"beta": 0.1}


@every_case(
    ("text", "value", "raw"),
    [
        ("--x 5", 5, "5"), ("--x=5", 5, "5"), ("--x", True, None), ("--x -1", -1, "-1"),
        ("--x -1e-5", -1e-5, "-1e-5"), ("--x 'a b'", "a b", "a b"), ('--x="1e-6"', 1e-6, "1e-6"),
        ("--x a b c", ("a", "b", "c"), "a b c"), ("--x 1 --y", 1, "1"), ("--x false", False, "false"),
        ("--x a\\ b", "a b", "a\\ b"), ("--x $'a\\nb\\q'", "a\nb\\q", "$'a\\nb\\q'"),
        ('--x "a \\"b\\" \\d"', 'a "b" \\d', 'a \\"b\\" \\d'), ("--x name#100", "name#100", "name#100"),
        ("--x ''", "", ""), ('--x \'{"a": {"b": 1}}\'', {"a": {"b": 1}}, '{"a": {"b": 1}}'), ("--x $", "$", "$"),
        ("--x a'b'c", "abc", "a'b'c"), ('--x "$5"', Unresolved("$5"), "$5"), ('--x "a\\\nb"', "ab", "a\\\nb"),
    ],
)  # fmt: skip
def test_values_of_flags(text: str, value: Value, raw: str | None) -> None:
    found = option(f"swift sft {text}", "x")
    assert (found.value, found.raw) == (value, raw)


def test_a_bare_flag_has_the_value_true_and_no_value_span() -> None:
    found = option("swift sft --bf16 --x 1", "bf16")
    assert (found.value, found.raw, found.value_span, found.origin) == (True, None, None, Origin.FLAG)


def test_spans_point_at_key_value_and_both() -> None:
    found = option("swift sft \\\n  --beta '0.1' \\\n  --x", "beta")
    assert (found.span.text, found.key_span.text) == ("--beta '0.1'", "beta")
    assert found.value_span is not None
    assert (found.value_span.text, found.value_span.line, found.value_span.column) == ("'0.1'", 2, 10)
    assert found.quoted


def test_environment_comes_from_prefixes_and_exports() -> None:
    text = "export A=1 B\nB=2\nexport B\nCUDA_VISIBLE_DEVICES=0,1 env C='x y' swift sft --lr 1\n"
    assert values(only(text), "env") == {"A": 1, "B": 2, "CUDA_VISIBLE_DEVICES": "0,1", "C": "x y"}


def test_a_prefix_hides_an_export_of_the_same_name() -> None:
    assert values(only("export A=1\nA=2 swift sft --x 1"), "env") == {"A": 2}


def test_an_export_of_something_unknown_is_unresolved() -> None:
    assert values(only("export A=$HOME\nexport Q\nswift sft --x 1"), "env") == {
        "A": Unresolved("$HOME"),
        "Q": Unresolved("$Q"),
    }


def test_environment_after_a_wrapper_counts() -> None:
    assert values(only("srun -n 1 env A=1 B=$C torchrun --nnodes 1 t.py --lr 1"), "env") == {
        "A": 1,
        "B": Unresolved("$C"),
    }


@every_case(
    ("text", "value"),
    [
        ("X=5\nswift sft --x $X", 5), ("X='a b'\nswift sft --x \"$X\"", "a b"), ("swift sft --x ${X:-7}", 7),
        ("X=\nswift sft --x ${X:-7}", 7), ("X=3\nX=${X:-8}\nswift sft --x ${X}", 3),
        ("swift sft --x ${X:-${Y:-2}}", 2), ("Y=1\nswift sft --x ${X:-$Z}", Unresolved("${X:-$Z}")),
        ("swift sft --x $X", Unresolved("$X")), ("swift sft --x /data/$X/m", Unresolved("/data/$X/m")),
        ("swift sft --x ${X##*/}", Unresolved("${X##*/}")), ("swift sft --x $(nproc)", Unresolved("$(nproc)")),
        ("swift sft --x `nproc`", Unresolved("`nproc`")), ("swift sft --x $((2*3+1))", 7),
        ("N=2\nswift sft --x $((16 / N / 1))", 8), ("N=2\nswift sft --x $((16 / ${N} - -1))", 9),
        ("N=3\nswift sft --x $(expr 16 / $N)", 5), ("N=3\nswift sft --x $(expr 16 % $N)", 1),
        ("swift sft --x $((-7 / 2))", -3), ("swift sft --x $((1/0))", Unresolved("$((1/0))")),
        ("swift sft --x $((2**3))", Unresolved("$((2**3))")), ("swift sft --x $((1 +))", Unresolved("$((1 +))")),
        ("swift sft --x $((a b))", Unresolved("$((a b))")),
        ("swift sft --x $(expr length a)", Unresolved("$(expr length a)")), ("swift sft --x $(echo 5)", 5),
        ("swift sft --x $(echo $Q)", Unresolved("$(echo $Q)")), ('A=(1 2)\nswift sft --x "${A[@]}"', (1, 2)),
        ("A=(1)\nA+=(2)\nswift sft --x ${A[*]}", (1, 2)), ("A=1\nA+=2\nswift sft --x $A", 12),
        ("A=1\nif [ -z $B ]; then\nA=2\nfi\nswift sft --x $A", Unresolved("$A")),
        ("if true; then\nA=2\nfi\nswift sft --x $A", 2),
        ("for A in 1 2; do\nswift sft --x $A\ndone", Unresolved("$A")), ("A=$B\nswift sft --x $A", Unresolved("$A")),
        ('A=(1 2)\nswift sft --x "a$A"', "a1 2"), ("swift sft --x $((", "$"), ("swift sft --x $(( (1+2)*3 ))", 9),
        ("swift sft --x $((1+2) )", Unresolved("$((1+2) )")),
    ],
)  # fmt: skip
def test_variables_are_evaluated_as_far_as_the_text_decides(text: str, value: Value) -> None:
    assert option(text, "x").value == value


def test_a_here_document_read_into_a_variable_holds_the_command() -> None:
    text = (
        "read -r -d '' training_commands <<EOF\n"
        "openrlhf.cli.train_dpo \\\n   --beta 0.1 \\\n   --flash_attn\nEOF\n    # --ipo\n"
        "deepspeed --module $training_commands\n"
    )
    command = only(text)
    assert (command.entry and command.entry.value) == "openrlhf.cli.train_dpo"
    assert values(command) == {"beta": 0.1, "flash_attn": True}
    assert option(text, "beta").span.line == 3
    assert not command.partial


def test_flags_kept_in_a_quoted_variable_are_expanded_at_their_place() -> None:
    text = 'EXTRA="--bf16 --lr 1e-6"\nswift sft --x 1 $EXTRA'
    assert values(only(text)) == {"x": 1, "bf16": True, "lr": 1e-6}
    assert option(text, "lr").span.line == 1


def test_arrays_of_overrides_are_expanded_and_positional_parameters_vanish() -> None:
    text = (
        'DATA=( # data\n  data.a=1\n  "data.b=[x,y]"\n)\n'
        'python -m verl.trainer.main_ppo "${DATA[@]}" c.d=2 "$@" | tee x.log'
    )
    command = only(text)
    assert values(command) == {"data.a": 1, "data.b": ("x", "y"), "c.d": 2}
    assert not command.partial


def test_an_element_of_an_array_is_several_words_where_the_array_is_used_without_quotes() -> None:
    text = 'ARGS=(\n  "--bf16"\n  "--num-workers 1"\n)\nswift sft {}\n'
    assert values(only(text.format("${ARGS[@]}"))) == {"bf16": True, "num-workers": 1}
    assert "num-workers" not in values(only(text.format('"${ARGS[@]}"')))


@every_case("text", ['"${MORE[@]}"', "$MORE", "--x 1 $MORE", "--x 1 ..."])
def test_what_may_hold_any_flags_makes_a_command_partial(text: str) -> None:
    assert only(f"swift sft --a 1 {text}").partial


def test_an_unknown_program_makes_a_command_partial() -> None:
    command = only("deepspeed --module $CMD --x 1")
    assert command.entry is None
    assert command.partial


def test_a_here_document_into_a_file_is_a_file() -> None:
    script = read('cat > ds.json <<EOF\n{"a": 1}\nEOF\nswift sft --deepspeed ds.json\n')
    assert [(name, piece.text, piece.line) for name, piece in script.files] == [("ds.json", '{"a": 1}\n', 2)]
    assert script.commands[0].config_files == ("ds.json",)


def test_batch_headers_are_launcher_flags_of_every_command() -> None:
    command = only("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -N 4\n#SBATCH --exclusive\nsrun torchrun t.py --lr 1\n")
    assert values(command, "launcher") == {"nodes": 2, "N": 4, "exclusive": True}


def test_a_command_string_of_bash_is_read_with_what_was_exported() -> None:
    command = only("export A=1\nN=2\nbash -lc 'torchrun --nproc_per_node $N t.py --lr 1'")
    assert values(command, None) == {"A": 1, "nproc_per_node": 2, "lr": 1}
    assert command.options[-1].span.column == command.options[-1].span.column


def test_several_commands_are_several() -> None:
    text = (
        "CUDA_VISIBLE_DEVICES=0 swift rollout --model a &\nsleep 5\n"
        "CUDA_VISIBLE_DEVICES=1 swift rlhf --model b && swift infer --x 1"
    )
    assert [c.entry.value for c in read(text).commands if c.entry] == ["swift rollout", "swift rlhf", "swift infer"]


@pytest.mark.parametrize(
    ("text", "expected", "problems", "partial"),
    [
        pytest.param(text, expected, problems.split(), partial, id=said)
        for said, text, expected, problems, partial in (
            ("a comment between continued lines ends the command",
             "swift sft --a 1 \\\n  # --b 2 \\\n  --c 3 \\\n  --d 4\n", {"a": 1}, "comment_in_command", True),
            ("a disabled flag at the end is no problem",
             "swift sft --a 1 \\\n  --b 2 \\\n  # --c 3\n", {"a": 1, "b": 2}, "", False),
            ("one missing backslash loses the flags below",
             "swift sft --a 1 \\\n  --b 2\n  --c 3 \\\n  --d 4\n", {"a": 1, "b": 2}, "missing_backslash", True),
            ("a paste without any backslash is one command",
             "swift sft\n  --a 1\n  --b 2\n", {"a": 1, "b": 2}, "missing_backslash", False),
            ("overrides below a command count like flags",
             "python -m verl.trainer.main_ppo\n  a.b=1\n  c.d=2\n", {"a.b": 1, "c.d": 2}, "missing_backslash", False),
            ("a missing blank before the backslash still separates",
             "swift sft --a 1\\\n--b 2\\\n  --c 3", {"a": 1, "b": 2, "c": 3}, "no_blank_before_backslash", False),
            ("stray backticks of Markdown do no harm", "swift sft --a 1 `\n --b 2`", {"a": 1, "b": 2},
             "missing_backslash", False),
            ("an empty variable is no word", "E=\nswift sft --bf16 $E --b 1", {"bf16": True, "b": 1}, "", False),
            ("a quoted one is", 'EXTRA=\nswift sft --bf16 "$EXTRA" --b 1', {"bf16": "", "b": 1}, "", False),
            ("an override behind a flag is not its value", "llamafactory-cli train x.yaml --bf16 learning_rate=1e-6",
             {"bf16": True, "learning_rate": 1e-6}, "", False),
            ("operators inside an array only separate", "A=(--a 1; --b 2)\nswift sft ${A[@]}", {"a": 1, "b": 2}, "",
             False),
            ("a substitution of cat is its here-document",
             "CMD=$(cat <<'E'\nopenrlhf.cli.train_sft --lr 1\nE\n)\ndeepspeed --module $CMD\n", {"lr": 1}, "", False),
            ("a comment behind a variable is no problem", "A=1 # one\nswift sft --a 1\n", {"a": 1}, "", False),
            ("nor is one below it", "A=1\n# two\nswift sft --a 1\n", {"a": 1}, "", False),
            ("an unclosed quotation costs only its line", "swift sft --a 'x \\\n --b 2", {"a": "x", "b": 2},
             "unclosed_quote", True),
            ("a command cut at its backslash is partial", "swift sft --a 1 \\", {"a": 1}, "", True),
            ("also with a line end behind it", "swift sft --a 1 \\\n", {"a": 1}, "", True),
        )
    ],
)  # fmt: skip
def test_how_far_a_command_goes(text: str, expected: dict[str, Value], problems: list[str], partial: bool) -> None:
    command = only(text)
    assert (values(command), codes(text), command.partial) == (expected, problems, partial)


def test_a_blank_after_the_backslash_ends_the_command() -> None:
    text = "swift sft --a 1 \\ \n  --b 2 \\\n  --c 3\n"
    assert values(only(text)) == {"a": 1}
    assert only(text).partial
    problem = read(text).problems[0]
    assert problem.code == "blank_after_backslash"
    assert "--b, --c" in problem.message
    assert (problem.span and problem.span.line) == 1


def test_a_word_over_two_lines_is_one_word() -> None:
    assert option("swift sft --a x\\\ny", "a").value == "xy"


def test_long_dashes_and_curly_quotes_are_read_as_plain_ones() -> None:
    text = "swift sft –bf16 —lr “1e-6” －－x ‘a’ ——y 1"
    assert values(only(text)) == {"bf16": True, "lr": 1e-6, "x": "a", "y": 1}
    assert "typographic" in codes(text)
    assert codes("swift sft –bf16 —lr 1").count("typographic") == 1


@every_case(
    ("text", "code"),
    [
        ("swift sft --a 'x \\\n --b 2", "unclosed_quote"),
        ('swift sft --a "x', "unclosed_quote"),
        ("swift sft --a 'x \\\n --b 2 'c' --d 'e", "unclosed_quote"),
        ("cat > a.json <<EOF\n{\nswift sft --a 1", "unclosed_heredoc"),
        ("cat <<EOF", "unclosed_heredoc"),
        ("A=(1 2\nswift sft --a 1", "unclosed_bracket"),
    ],
)
def test_what_is_opened_and_never_closed_is_said(text: str, code: str) -> None:
    assert code in codes(text)


def test_quoted_json_may_run_over_lines() -> None:
    text = (
        'ray job submit --runtime-env-json=\'{\n  "working_dir": "x"\n'
        "}' -- python3 -m openrlhf.cli.train_ppo_ray --bf16"
    )
    assert values(only(text), "launcher")["runtime-env-json"] == {"working_dir": "x"}
    assert values(only(text)) == {"bf16": True}


def test_self_feeding_variables_stay_bounded() -> None:
    text = (
        "A=aaaaaaaaaa\n"
        + "A=$A$A$A$A\n" * 40
        + "B=(x)\n"
        + 'B=("${B[@]}" "${B[@]}")\n' * 40
        + "swift sft --x $A --y ${B[@]}"
    )
    began = time.thread_time()
    assert read(text).commands
    assert time.thread_time() - began < 15


def test_a_command_is_read_up_to_a_bound_of_words() -> None:
    assert len(only("swift sft " + "--a " * 20_100).options) < 20_100


def test_a_substitution_closes_nearby_even_after_many_that_do_not() -> None:
    script = read("python a.py " + "${a:- " * 60 + "\npython train.py --lr ${LR:-1e-6} --b 1\n")
    assert any(option.key == "lr" and option.value == 1e-6 for c in script.commands for option in c.options)


def test_the_values_of_a_flag_may_come_from_different_places() -> None:
    found = option("TAIL=(--lora_target q)\nMORE=(v)\nswift sft ${TAIL[@]} ${MORE[@]} k --b 1", "lora_target")
    assert found.value == ("q", "v", "k")
    late = option("A=(x)\nswift sft --t k ${A[@]}", "t")
    assert (late.value, late.value_span and late.value_span.text) == (("k", "x"), "k")


@every_case(
    ("text", "value"),
    [
        ('--system "say “hi” now"', "say “hi” now"),
        ('--system "at `date` now"', Unresolved("at `date` now")),
        ("--n $((2(3)))", Unresolved("$((2(3)))")),
        ("--eos $'open", "$open"),
        ("--n $((2**3))", Unresolved("$((2**3))")),
    ],
)
def test_quotes_and_substitutions_inside_a_value_are_kept(text: str, value: Value) -> None:
    assert option(f"swift sft {text}", text.split()[0].strip("-")).value == value


def test_a_comment_between_variables_and_their_program_takes_them_away() -> None:
    text = "A=1 \\\nB=2 \\\n# C=3 \\\nswift sft --a 1\n"
    assert values(only(text)) == {"a": 1}
    assert codes(text) == ["comment_in_command"]
    assert "A, B" in read(text).problems[0].message
