"""Pastes that nobody wants and everybody sends: broken, huge, hostile. Each by a name that says what it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.incidents import GEMMA_COMMAND, KTO_COMMAND, KTO_SINGLE, KTO_YAML, SWIFT_COMMAND, TRL_COMMAND, TRL_LOG
from trainmedic.kb.model.place import Attachment

ASKED = "Why is my loss NaN?"
DIGITS = "9" * 5000
KTO = "deepspeed --module openrlhf.cli.train_kto --vanilla_loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """One bad input. ``problems`` are codes that the receipt must hold; ``rules`` what must be found all the same."""

    name: str
    files: tuple[tuple[str, str | bytes], ...] = ()
    question: str = ASKED
    problems: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return tuple(Attachment(name=name, content=content) for name, content in self.files)


def bad(
    name: str,
    *files: tuple[str, str | bytes],
    question: str = ASKED,
    problems: tuple[str, ...] = (),
    rules: tuple[str, ...] = (),
) -> Bad:
    return Bad(name=name, files=files, question=question, problems=problems, rules=rules)


def bomb() -> str:
    """Nine aliases of the line above, on twenty lines: 9**20 scalars."""
    lines = ['a: &a ["lol", "lol"]']
    for n in range(20):
        lines.append(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]")
    return "\n".join(lines) + "\n"


def merge_bomb() -> str:
    lines = ["a: &a {x: 1}"]
    for n in range(20):
        lines.append(f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{', '.join(['*' + chr(97 + n)] * 9)}]}}")
    return "\n".join(lines) + "\n"


def fifteen() -> tuple[tuple[str, str | bytes], ...]:
    texts = (KTO_COMMAND, KTO_SINGLE, SWIFT_COMMAND, GEMMA_COMMAND, TRL_COMMAND)
    return tuple((f"train{n}.sh", texts[n % len(texts)]) for n in range(15))


def damaged() -> Iterator[Bad]:
    """What is not the text it should be."""
    yield bad("nothing but blanks and an empty file", ("empty.yaml", ""), question=" \n\t ")
    yield bad("an empty file", ("empty.log", b""))
    yield bad("a line break only", ("a.log", "\n"))
    yield bad("binary", ("model.safetensors", bytes(range(256)) * 64), problems=("binary",))
    yield bad("an archive", ("logs.zip", b"PK\x03\x04" + b"\0" * 4096), problems=("archive",))
    yield bad("a picture", ("screen.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4), problems=("picture",))
    yield bad("binary and a good file", ("x.bin", b"\x7fELF" + b"\0" * 999), ("train.sh", KTO_SINGLE),
              problems=("binary",), rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("nul characters", ("train.sh", KTO_SINGLE.replace(" --bf16", " --bf16\0")),
              rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("nul bytes only", ("a.log", b"\0" * 10_000), problems=("binary",))
    yield bad("a log that a killed process padded with nuls", ("a.log", TRL_LOG.encode() + b"\0" * 64))
    yield bad("a lone surrogate", ("a.log", "loss \ud800 nan \udfff"), question="loss \udc80 is nan")
    yield bad("utf-16", ("train.sh", KTO_SINGLE.encode("utf-16")), rules=("openrlhf-kto-vanilla-loss-single-class",))
    yield bad("utf-16 without a mark", ("train.sh", KTO_SINGLE.encode("utf-16-be")),
              rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("half a utf-16 character", ("train.sh", KTO_SINGLE.encode("utf-16")[:-1]))
    yield bad("gb18030", ("train.sh", ("# 训练脚本：损失变成 nan\n" + KTO_SINGLE).encode("gb18030")),
              rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("two encodings in one file", ("a.log", "训练".encode("gb18030") + "损失".encode() + b"\xff loss: nan\n"))
    yield bad("a byte order mark", ("train.sh", b"\xef\xbb\xbf" + KTO_SINGLE.encode()),
              rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("a byte order mark in the middle", ("a.yaml", KTO_YAML.replace("### method", "\ufeff### method")))
    yield bad("windows line ends", ("train.sh", KTO_SINGLE.replace("\n", "\r\n")),
              rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("old mac line ends", ("train.sh", KTO_SINGLE.replace("\n", "\r")),
              rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("latin-1", ("a.log", "l'entraînement a échoué: loss nan\n".encode("latin-1") * 50))
    yield bad("tabs in yaml", ("a.yaml", "train:\n\tlr: 1\n\tbf16: true\n"), problems=("yaml_error",))
    yield bad("colours", ("a.log", "\x1b[31mloss\x1b[0m: \x1b[1mnan\x1b[0m\n" * 100 + "\x1b[999999m\x1b[\x1b]0;x\x07"))
    yield bad("carriage returns of a progress bar", ("a.log", "\r 10%|# | 1/10 [00:01<00:09, 1.0s/it]" * 20_000))


def unfinished() -> Iterator[Bad]:
    """What stops in the middle."""
    yield bad("an unclosed quote", ("t.sh", f'{KTO} --save_path "./a b\n  --bf16\n'))
    yield bad("an unclosed curly quote", ("t.sh", f"{KTO} --save_path “./a --bf16\n"))
    yield bad("an unclosed fence", question=f"nan!\n```bash\n{KTO}\n", problems=("unclosed_fence",))
    yield bad("an unclosed here document", ("t.sh", "cat <<EOF > ds.json\n{"), problems=("unclosed_heredoc",))
    yield bad(
        "here documents in here documents", ("t.sh", "cat <<EOF > a.yaml\n" * 2_000), problems=("unclosed_heredoc",)
    )
    yield bad("half a command", ("t.sh", "deepspeed --module openrlhf.cli.train_kto --pretrain"))
    yield bad("half a word", ("t.sh", "deepspeed --module openrlhf.cli.trai"))
    yield bad("a continuation into nothing", ("t.sh", f"{KTO} \\"))
    yield bad("half a json", ("ds.json", '{"zero_optimization": {"stage": 3}, "fp16": {"ena'), problems=("json_error",))
    yield bad("half a python call", ("t.py", "from trl import DPOConfig\nargs = DPOConfig(beta=0.1,\n  loss_type='sig"))
    yield bad("half a toml", ("a.toml", "[train\nlr = 1e-6\nx = ["), problems=("toml_error",))
    yield bad("half a traceback", ("a.log", 'Traceback (most recent call last):\n  File "train.py", line'))
    yield bad("half a row", ("a.log", "{'loss': 0.1, 'grad_norm': na"))
    yield bad("brackets the wrong way round", ("ds.json", "}{][,:,}"), ("t.py", "DPOConfig)beta=0.1("))


def deep() -> Iterator[Bad]:
    """What goes on inside itself."""
    yield bad("deep yaml", ("a.yaml", "a: " + "[" * 100_000), problems=("yaml_error",))
    yield bad("deep yaml mappings", ("a.yaml", "a: " + "{a: " * 50_000), problems=("yaml_error",))
    yield bad("a yaml staircase", ("a.yaml", "".join(" " * n + "k:\n" for n in range(1_000))))
    yield bad("deep json", ("a.json", "[" * 100_000 + "]" * 100_000), problems=("json_error",))
    yield bad("deep json objects", ("a.json", '{"a":' * 50_000 + "1" + "}" * 50_000), problems=("json_error",))
    yield bad("deep python", ("a.py", "x = DPOConfig(" + "(" * 100_000 + ")" * 100_001), problems=("python_error",))
    yield bad("a long python sum", ("a.py", "DPOConfig(beta=" + "+".join(["1"] * 20_000) + ")"))
    yield bad("many minus signs", ("a.py", "DPOConfig(beta=" + "-" * 100_000 + "1)"))
    yield bad("deep parentheses in the question", question="(" * 100_000)
    yield bad("deep substitutions", ("a.sh", "echo " + "$(" * 20_000))
    yield bad("deep expansions", ("a.sh", "python x.py " + "${a:-" * 20_000))
    yield bad("a yaml bomb", ("a.yaml", bomb()), problems=("too_large",))
    yield bad("a yaml merge bomb", ("a.yaml", merge_bomb()))
    yield bad("yaml that holds itself", ("a.yaml", "a: &a [*a]\nb: &b {c: *b}\n"), problems=("yaml_error",))
    yield bad("yaml that wants an object", ("a.yaml", "a: !!python/object/apply:os.system ['touch /tmp/owned']\n"))
    yield bad("a shell variable bomb", ("a.sh", "a=xx\n" + "a=$a$a\n" * 40 + "python x.py --k $a\n"))
    yield bad("a brace bomb", ("a.sh", "python x.py " + "{a,b}" * 40))
    yield bad("a deep toml array", ("a.toml", "a = " + "[" * 20_000), problems=("toml_error",))


def large() -> Iterator[Bad]:
    """What goes on and on."""
    yield bad("thousands of flags", ("t.sh", KTO + "".join(f" --flag{n} {n}" for n in range(4_000))))
    yield bad("one flag thousands of times", ("t.sh", KTO + " --beta 0.1" * 4_000))
    yield bad("a line of a megabyte", ("t.sh", f"{KTO} --save_path {'a' * 1_000_000}"))
    yield bad("a log line of a megabyte", ("a.log", "loss: nan " * 100_000))
    yield bad("thousands of commands", ("t.sh", "python train.py --a 1\n" * 4_000))
    yield bad("thousands of code blocks", question="```yaml\na: 1\n```\n" * 4_000)
    yield bad("fifty thousand fences", question="```\n" * 50_000)
    yield bad("fifteen configurations", *fifteen(), rules=("openrlhf-kto-vanilla-loss-single-class",))
    yield bad("seventy attachments", *((f"{n}.txt", "x") for n in range(70)), problems=("too_many",))
    yield bad("a long question", question="训练的时候 loss 变成 nan, loss is nan " * 20_000)
    yield bad("twenty thousand packages", ("pip.txt", "".join(f"package{n}==1.0.{n}\n" for n in range(20_000))))
    yield bad("a hundred thousand rows", ("m.csv", "step,loss\n" + "".join(f"{n},{n}\n" for n in range(100_000))),
              problems=("rows_thinned",))  # fmt: skip
    yield bad("twenty thousand tracebacks", ("a.log", "Traceback (most recent call last):\n" * 20_000))


def numbers() -> Iterator[Bad]:
    """Numbers that no machine holds."""
    for key in ("micro_train_batch_size", "learning_rate", "zero_stage"):
        yield bad(f"{key} of five thousand digits", ("t.sh", f"{KTO} --{key} {DIGITS} --{key} -{DIGITS}"))
        yield bad(f"{key} beyond all bounds", ("t.sh", f"{KTO} --{key} 1e999999"))
    yield bad("three hundred and fifty digits", ("t.sh", f"{KTO} --learning_rate {'9' * 350}"))
    for name, number in {
        "decimal": DIGITS, "hexadecimal": "0x" + "f" * 5_000, "octal": "0o" + "7" * 7_000,
        "binary": "0b" + "1" * 20_000, "sexagesimal": "1:" * 3_000 + "1", "infinite": "1e999999",
    }.items():  # fmt: skip
        config = f"per_device_train_batch_size: {number}\nlearning_rate: {number}\n"
        yield bad(f"{name} numbers in yaml", ("a.yaml", KTO_YAML + config))
        code = f"DPOConfig(beta={number}, learning_rate=-{number}, optim_args={{{number}: 1}})\n"
        yield bad(f"{name} numbers in python", ("t.py", code))
        yield bad(
            f"{name} numbers in json", ("ds.json", f'{{"train_batch_size": {number}, "fp16": {{"enabled": true}}}}')
        )
        yield bad(f"{name} numbers in toml", ("a.toml", f"learning_rate = {number}\n"))
        rows = f"{{'loss': {number}, 'step': {number}, 'epoch': {number}}}\nstep {number}: loss {number}\n"
        yield bad(f"{name} numbers in a log", ("a.log", rows))
    yield bad("towers of powers", ("t.py", "DPOConfig(beta=9**9**9**9, learning_rate=10**100000)\n"))
    yield bad(
        "versions of five thousand digits", ("pip.txt", f"transformers=={DIGITS}.{DIGITS}\ntrl=={DIGITS}rc{DIGITS}\n")
    )
    yield bad("a version range of five thousand digits", question=f"transformers~=4.{DIGITS}, torch>={DIGITS} nan")
    yield bad("ranks of five thousand digits", ("a.log", f"[rank{DIGITS}]: Traceback (most recent call last):\n"))
    yield bad("digits of another script", ("t.sh", f"{KTO} --micro_train_batch_size ١ --beta ０.１"))


def hostile() -> Iterator[Bad]:
    """What is meant to hurt."""
    for name, text in {
        "letters": "a" * 50_000 + "!", "blanks": " " * 200_000, "equals": "=" * 200_000, "dots": "1." * 100_000,
        "dashes": "-" * 200_000, "colons": ": " * 100_000, "quotes": "'" * 100_000, "braces": "{'" * 100_000,
        "backslashes": "\\\n" * 50_000, "dollars": "$" * 50_000, "semicolons": ";" * 100_000, "bars": "100%|" * 50_000,
        "frames": '  File "a", line 1, in x\n' * 20_000, "mail signs": "a@" * 50_000, "pipes": "| a | b |\n" * 20_000,
        "versions": "a==1." + "0." * 50_000, "comments": "#" * 200_000, "commas": ",\n" * 50_000,
    }.items():  # fmt: skip
        yield bad(f"a great many {name}", ("a.log", text))
    yield bad("backticks", question="`" * 200_000)
    yield bad(
        "zero-width characters", ("t.sh", KTO.replace("--", "\u200b--\u200d")), question="lo\u200bss is n\u200ban"
    )
    yield bad(
        "right-to-left overrides", ("t.sh", f"{KTO} --save_path \u202e./nan\u202c"), question="\u2067nan\u2069 loss"
    )
    yield bad("a hundred thousand accents", question="a" + "\u0301" * 100_000)
    yield bad("html", ("<img src=x onerror=alert(1)>.log", "<script>alert(1)</script> loss: nan"),
              question="<script>alert(1)</script> loss is nan")  # fmt: skip
    yield bad("a path out of the folder", ("../../../../etc/passwd", KTO), ("C:\\Windows\\win.ini", "[a]\nb=1\n"))
    yield bad("a name with line breaks", ("a\n\n# Owned\n```\n.log", "loss: nan"))
    yield bad("an empty name", ("", KTO_SINGLE), rules=("openrlhf-kto-vanilla-loss-single-class",))
    yield bad("a name of ten thousand characters", ("n" * 10_000 + ".sh", KTO))
    yield bad("a name with half a surrogate pair", ("a\udcff.sh", KTO_SINGLE))
    yield bad("the same name three times", ("t.sh", KTO_SINGLE), ("t.sh", SWIFT_COMMAND), ("t.sh", TRL_COMMAND),
              rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("markdown that ends the code block", ("t.sh", f"# a\n```\n# Owned\n````\n{KTO_SINGLE}```\n"),
              rules=("openrlhf-kto-vanilla-loss-single-class",))  # fmt: skip
    yield bad("a sql injection", question="'; DROP TABLE turns; -- loss nan")
    yield bad(
        "a format string", ("t.sh", f"{KTO} --save_path {{0.__class__}}%s%n{{setting}}"), question="{} %s {beta} nan"
    )
    yield bad("markers of our own", ("t.sh", f"{KTO} --save_path [1]⟦x⟧[999]"), question="[1] [999] ⟦loss⟧ is nan")


BAD = (*damaged(), *unfinished(), *deep(), *large(), *numbers(), *hostile())
