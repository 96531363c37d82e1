"""Messages are found in what people paste, and explained with their values."""

from __future__ import annotations

import time

import pytest

from tests.every_case import every_case
from trainmedic.kb.error_messages.advice import AdviceBook, load_advice, read_advice
from trainmedic.kb.error_messages.explain import MessageMatch, explain
from trainmedic.kb.error_messages.index import MessageIndex, load_index
from trainmedic.kb.error_messages.packages import package
from trainmedic.kb.error_messages.tables import MessageTable
from trainmedic.kb.error_messages.template import skeleton, split
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.page import PageError
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.messages import collected, table
from trainmedic.kb.sources.tree import tree_of

TRAINER = """
def check(args, world_size):
    if args.batch_size % world_size != 0:
        raise ValueError(f"The batch size ({args.batch_size}) must be a multiple of the world size ({world_size}).")
    if args.packing:
        logger.warning("Packing is on, so the option `pad_to_multiple_of` has no effect in this run.")
    raise RuntimeError(f"Rank {rank} of {total} got {count} samples, which is not what the others have seen.")
"""
SHARED = 'raise TypeError(f"Cannot place a layer of kind {kind} on the device.")'


def index_of(file: str = "trainer.py", **sources: dict[str, str]) -> MessageIndex:
    """An index of packages, each with the source of one file by release."""
    texts = []
    for name, releases in sorted(sources.items()):
        about = package(name)
        path = f"{about.code[0].removeprefix(about.above)}{file}"
        trees = [tree_of(name, version, "wheel", {path: text.encode()}) for version, text in releases.items()]
        found = collected(trees, about)
        texts.append(table(about, *found))
    return MessageIndex(map(MessageTable.of, texts))


INDEX = index_of(
    trl={"0.9.0": TRAINER, "0.10.0": TRAINER + SHARED, "0.11.0": SHARED}, peft={"0.9.0": SHARED, "0.10.0": SHARED}
)
NO_ADVICE = AdviceBook(())


def matches(text: str) -> tuple[MessageMatch, ...]:
    return explain(parse(text), index=INDEX, advice=NO_ADVICE)


def first(text: str) -> MessageMatch:
    return matches(text)[0]


def test_a_template_is_split_at_its_holes() -> None:
    assert split("got {a.b} of {{x}} {c}") == (("got", "of {x}", ""), ("a.b", "c"))
    assert skeleton("got {a}") == skeleton("got {b}") != skeleton("got {a} more")


def test_a_message_is_found_with_the_values_in_its_holes() -> None:
    match = first("ValueError: The batch size (6) must be a multiple of the world size (4).")
    assert dict(match.values) == {"args.batch_size": "6", "world_size": "4"}
    assert match.span.text == "The batch size (6) must be a multiple of the world size (4)."
    assert (match.span.line, match.span.column) == (1, 13)


@every_case(
    "text",
    [
        "[rank3]: ValueError: The batch size (6) must be a multiple of the world size (4).",
        "(WorkerDict pid=12, ip=10.0.0.1) ValueError: The batch size (6) must be a multiple of the world size (4).",
        "2025-01-01 10:00:00,123 - ERROR - The batch size (6) must be a multiple of the world size (4).",
        "it says `The batch size (6) must be a multiple of the world size (4).` what now?",
        "训练报错：The batch size (6) must be a multiple of the world size (4).",
        "ValueError: The batch size (6) must be a\nmultiple of the world\nsize (4).",
        "[rank0]: ValueError: The batch size (6) must be a\n[rank0]: multiple of the world size (4).",
    ],
)
def test_prefixes_quotes_and_line_breaks_do_not_hide_a_message(text: str) -> None:
    assert first(text).entry.kind == "ValueError"


def test_a_message_without_its_end_is_found_if_its_beginning_is_long() -> None:
    match = first("RuntimeError: Rank 3 of 8 got 17 samples, which is not what the others")
    assert not match.is_whole
    assert not matches("RuntimeError: Rank 3 of 8 got 17 samples, which")


@every_case(
    "text",
    [
        "why must the batch size be larger?",
        "The batch size (6) must be a multiple of the number of samples, hm, in the end of the world size (4)",
        "Rank 3 of 8 got 17 samples, which is not what I see",
        "loss 0.3\n" * 50,
        "",
    ],
)
def test_prose_that_only_resembles_a_message_is_none(text: str) -> None:
    assert not matches(text)


def test_the_source_line_in_a_traceback_is_not_what_was_printed() -> None:
    text = """Traceback (most recent call last):
  File "/x/site-packages/trl/trainer.py", line 4, in check
    raise ValueError(f"The batch size ({args.batch_size}) must be a multiple of the world size ({world_size}).")
ValueError: The batch size (6) must be a multiple of the world size (4).
"""
    assert [match.span.line for match in matches(text)] == [4]


def test_the_package_of_the_innermost_frame_is_meant_if_several_say_the_same() -> None:
    frame = 'File "/x/site-packages/{0}/trainer.py", line 1, in f'
    text = frame + "\n    f()\nTypeError: Cannot place a layer of kind x on the device."
    for name in ("peft", "trl"):
        match = first("Traceback (most recent call last):\n  " + text.format(name))
        assert match.entry.package == name
        assert {entry.package for entry in match.others} == {"peft", "trl"} - {name}


def test_the_frameworks_own_message_is_meant_without_a_traceback() -> None:
    text = (
        "TypeError: Cannot place a layer of kind x on the device.\n```python\nDPOConfig(output_dir='x', beta=0.1)\n```"
    )
    assert first(text).entry.package == "trl"


def test_the_pasted_version_is_compared_with_the_releases_that_have_the_message() -> None:
    text = "trl=={}\nValueError: The batch size (6) must be a multiple of the world size (4)."
    assert [first(text.format(version)).in_version for version in ("0.8.0", "0.9.4", "0.10.2", "0.11.0")] == [
        None,  # older than all that were read
        True,
        True,
        False,
    ]
    assert first("ValueError: The batch size (6) must be a multiple of the world size (4).").in_version is None


def test_a_message_of_the_newest_release_read_is_taken_to_stay() -> None:
    assert first("peft==0.17.0\nTypeError: Cannot place a layer of kind x on the device.").in_version


def test_the_condition_has_the_values_of_the_message_and_of_the_run() -> None:
    match = first(
        "ValueError: The batch size (6) must be a multiple of the world size (4).\n"
        "Packing is on, so the option `pad_to_multiple_of` has no effect in this run.\n```yaml\npacking: true\n```"
    )
    assert match.place.condition == "args.batch_size % world_size != 0"
    assert {value.name: value.value for value in match.conditions} == {"args.batch_size": "6", "world_size": "4"}


def test_an_option_that_the_condition_names_is_shown_with_its_place() -> None:
    log = "Packing is on, so the option `pad_to_multiple_of` has no effect in this run."
    text = log + "\n```yaml\npacking: true\nlr: 1\n```"
    (value,) = (value for value in first(text).conditions if value.name == "args.packing")
    assert value.value == "True"
    assert value.span is not None
    assert value.span.line == 3


def test_errors_come_before_warnings() -> None:
    text = (
        "Packing is on, so the option `pad_to_multiple_of` has no effect in this run.\n"
        "ValueError: The batch size (6) must be a multiple of the world size (4)."
    )
    assert [match.entry.kind for match in matches(text)] == ["ValueError", "warning"]


def test_the_place_links_to_the_last_release_that_has_the_message() -> None:
    match = first("ValueError: The batch size (6) must be a multiple of the world size (4).")
    assert match.url == "https://github.com/huggingface/trl/blob/v0.10.0/trl/trainer.py#L4"


def test_a_message_beside_the_evidence_is_read_too() -> None:
    (match,) = explain(
        parse("what is this"), "TypeError: Cannot place a layer of kind x on the device.", INDEX, NO_ADVICE
    )
    assert match.span.attachment is None


ADVICE = """
- package: trl
  says: must be a multiple of the world size
  meaning: {en: The batch is shared out., zh: 批次要平分。}
  change: {en: Change it., zh: 修改它。}
"""


def test_advice_is_found_by_package_and_literal_part() -> None:
    book = AdviceBook(read_advice(ADVICE, "a.yaml"))
    (match,) = explain(parse("The batch size (6) must be a multiple of the world size (4)."), "", INDEX, book)
    assert match.advice is not None
    assert match.advice.change is not None
    assert match.advice.change.zh == "修改它。"


def test_advice_without_a_case_must_say_what_to_change() -> None:
    with pytest.raises(PageError, match="meaning and change"):
        read_advice("- {package: trl, says: must be a multiple}", "a.yaml")


def test_every_advice_is_about_an_indexed_message() -> None:
    literals = {table.package: literal_texts(table.package) for table in load_index().tables}
    missing = [
        f"{advice.package}: {advice.says}"
        for advice in load_advice().all()
        if not any(advice.says in literal for literal in literals.get(advice.package, ()))
    ]
    assert not missing


def literal_texts(name: str) -> list[str]:
    (found,) = (table for table in load_index().tables if table.package == name)
    return [entry.literal for entry in found]


def test_a_log_of_400_lines_is_searched_in_little_time() -> None:
    index = load_index()
    lines = [f"{{'loss': 0.{n}, 'grad_norm': 1.25, 'learning_rate': 1e-06, 'epoch': 0.{n}}}" for n in range(400)]
    lines[200] = "ValueError: Attempting to unscale FP16 gradients."
    started = time.thread_time()
    index.find(lines)
    assert time.thread_time() - started < 0.2  # 20 ms on a quiet machine


@every_case(
    "text",
    [
        "UserWarning: Packing is on, so the option pad_to_multiple_of has no effect in this run.",
        "UserWarning: `Packing is on, so the option pad_to_multiple_of has no effect in this run.`",
    ],
)
def test_backticks_that_markdown_has_eaten_or_added_do_not_matter(text: str) -> None:
    assert first(text).span.text.startswith("Packing is on") == ("`P" not in text)
    assert first(text).entry.kind == "warning"


def test_a_span_holds_the_backticks_of_the_pasted_text() -> None:
    text = "UserWarning: Packing is on, so the option `pad_to_multiple_of` has no effect in this run."
    assert first(text).span.text == text.removeprefix("UserWarning: ")


SHORT = index_of(trl={"0.9.0": 'raise ValueError(f"{name} is not supported")\nraise TypeError("unknown reward {r}")'})


@every_case(
    ("text", "is_found"),
    [
        ("ValueError: dapo is not supported", True),
        ("ValueError: the loss dapo is not supported", False),
        ("ValueError: dapo is not supported on this device", False),
    ],
)
def test_a_short_message_must_be_all_that_its_line_says(text: str, is_found: bool) -> None:
    assert bool(explain(parse(text), index=SHORT, advice=NO_ADVICE)) == is_found


def test_a_message_without_its_last_marks_is_found() -> None:
    index = index_of(trl={"0.9.0": 'raise RuntimeError(f"The module cannot be loaded from {path}: {error}!")'})
    (match,) = explain(parse("RuntimeError: The module cannot be loaded from /x/y"), index=index, advice=NO_ADVICE)
    assert not match.is_whole


def test_another_release_may_go_on_in_other_words_behind_a_long_beginning() -> None:
    long = "Mixed precision training with this option and half precision evaluation can only be used on CUDA"
    index = index_of(trl={"0.9.0": f'raise ValueError("{long} or NPU devices or certain others.")'})
    (match,) = explain(parse(f"ValueError: {long} devices."), index=index, advice=NO_ADVICE)
    assert not match.is_whole
    short = "Mixed precision training with this option and half"
    assert explain(parse(f"ValueError: {short} a bottle."), index=index, advice=NO_ADVICE) == ()


def test_a_mark_behind_the_words_that_are_looked_up_does_not_matter() -> None:
    index = index_of(trl={"0.9.0": 'raise ValueError(f"{a} does not support Flash Attention 2.0 yet. {b}")'})
    (match,) = explain(parse("Model does not support Flash Attention 2.0 yet"), index=index, advice=NO_ADVICE)
    assert match.values == {"a": "Model"}


def test_a_message_of_names_and_values_is_found() -> None:
    index = index_of(trl={"0.9.0": 'assert n == m, f"{key}: {len(values)=}, {len(scores)=}"'})
    (match,) = explain(parse("AssertionError: score: len(values)=1, len(scores)=100"), index=index, advice=NO_ADVICE)
    assert match.values == {"key": "AssertionError: score", "len(values)": "1", "len(scores)": "100"}


def test_a_message_that_is_cut_off_anywhere_is_no_failure() -> None:
    message = "RuntimeError: Rank 3 of 8 got 17 samples, which is not what the others have seen."
    for length in (at for at, character in enumerate(f"{message} ") if character == " "):
        line = message[:length]
        for text in (line, f"{line}\nanother line", f"{line} `another` word"):
            assert all(match.span.text in text for match in matches(text))


def test_a_line_of_a_script_or_a_configuration_is_no_message() -> None:
    raised = "ValueError: The batch size (6) must be a multiple of the world size (4)."
    script = f'print("""\n{raised}\n""")\nmodel = AutoModel.from_pretrained(name)\n'
    for name, text in (("train.py", script), ("train.yaml", f"note: >-\n  {raised}\nlr: 1.0\n")):
        evidence = parse("", [Attachment(name=name, content=text)])
        assert explain(evidence, index=INDEX, advice=NO_ADVICE) == ()
    log = parse("", [Attachment(name="train.log", content=raised)])
    assert explain(log, index=INDEX, advice=NO_ADVICE)


@pytest.mark.parametrize(
    ("notice", "version", "found"),
    [("", "0.10.0", False), ("", "0.11.0", True), ("torch_xla 2.5 on TPU v4\n", "0.10.0", True)],
)
def test_a_notice_is_not_explained_by_code_for_other_hardware_of_a_later_release(
    notice: str, version: str, found: bool
) -> None:
    text = 'logger.warning("The cache of this model is off while it is being trained.")'
    releases = {release: text for release in ("0.9.0", "0.10.0", "0.11.0")}
    index = index_of(trl=releases, file="integrations_tpu.py")
    pasted = f"trl=={version}\n"
    log = f"{notice}The cache of this model is off while it is being trained.\n"
    evidence = parse("", [Attachment(name="pip.txt", content=pasted), Attachment(name="train.log", content=log)])
    assert bool(explain(evidence, index=index, advice=NO_ADVICE)) is found
