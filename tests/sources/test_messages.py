"""What is read from a source: templates, exceptions, conditions; and how releases are merged."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.error_messages.packages import Package, package
from trainmedic.kb.error_messages.tables import MessageTable, Place
from trainmedic.kb.sources.messages import collected, table
from trainmedic.kb.sources.statements import Message, messages_of
from trainmedic.kb.sources.tree import SourceTree, tree_of

TRL = Package(name="trl", repository="huggingface/trl", tags="v{version}", code=("trl/",), skip=("/tests/",))


def only(source: str) -> Message:
    (message,) = messages_of(source)
    return message


@every_case(
    ("expression", "template"),
    [
        ('f"batch size {args.batch} must divide {n!r:>8}"', "batch size {args.batch} must divide {n}"),
        ('"batch size %d of %s is 100%% wrong" % (a, b)', "batch size {a} of {b} is 100% wrong"),
        ('"batch size {} and {rank:d} do not fit".format(a, rank=r)', "batch size {a} and {r} do not fit"),
        ('"batch size {1} and {0} do not fit".format(a, b)', "batch size {b} and {a} do not fit"),
        ('"the batch size " "is not " f"{a} but {b}"', "the batch size is not {a} but {b}"),
        ('"the batch size is " + str(a) + " and no more"', "the batch size is {a} and no more"),
        ('"\\n".join(["the batch size", f"is {a}"])', "the batch size is {a}"),
        ('textwrap.dedent("""\n    the batch size\n    is wrong""")', "the batch size is wrong"),
        ('f"a literal {{brace}} and {a} more"', "a literal {{brace}} and {a} more"),
        ('"a literal {brace} and nothing else"', "a literal {{brace}} and nothing else"),
        ('f"the batch {({1: 2})[x]} has no simple name"', "the batch {} has no simple name"),
    ],
)
def test_a_message_becomes_a_template(expression: str, template: str) -> None:
    assert only(f"raise ValueError({expression})").template == template


def test_a_message_assigned_before_it_is_raised_is_followed() -> None:
    source = 'def f():\n    text = f"the batch size {a}"\n    text += " is too large"\n    raise ValueError(text)'
    assert only(source).template == "the batch size {a} is too large"


def test_problems_collected_in_a_list_are_messages_of_what_raises_them() -> None:
    source = """
def check(self, config):
    problems: list[str] = []
    if self.rank > config.most:
        problems.append(f"LoRA rank {self.rank} is greater than max_lora_rank {config.most}.")
    problems.append("too short")
    names.append("a list of which nothing is raised at all")
    if problems:
        raise ValueError(f"{' '.join(problems)}")
"""
    message = only(source)
    assert message.template == "LoRA rank {self.rank} is greater than max_lora_rank {config.most}."
    assert (message.kind, message.line, message.condition) == ("ValueError", 5, "self.rank > config.most")


def test_a_literal_argument_is_part_of_the_message() -> None:
    source = 'logger.warning("%s\\n%s", "batch_size is not recommended.", f"Divide by {n} instead.")'
    assert only(source).template == "batch_size is not recommended. Divide by {n} instead."


def test_short_messages_and_single_words_are_left_out() -> None:
    assert not list(messages_of('raise ValueError("too short")\nraise KeyError("averyveryverylongword")'))


@every_case(
    ("call", "kind"),
    [
        ('raise errors.ConfigError("the batch size is wrong")', "ConfigError"),
        ('warnings.warn("the batch size is wrong", UserWarning)', "warning"),
        ('logger.warning_once("the batch size is wrong")', "warning"),
        ('say = logger.info if quiet else logger.warning\nsay("the batch size is wrong")', "warning"),
        ('logger.warning_rank0("the batch size is wrong")', "warning"),
        ('logging.getLogger(__name__).error("the batch size is wrong")', "error"),
        ('logger.error("the batch size is wrong")', "error"),
        ('parser.error("the batch size is wrong")', "error"),
        ('print("Warning: the batch size is wrong")', "print"),
        ('sys.exit("the batch size is wrong")', "SystemExit"),
        ('assert a, "the batch size is not what was expected"', "assert"),
        ('torch._check(a, lambda: "the batch size is wrong")', "RuntimeError"),
        ('_p_assert(a, "the batch size is not what was expected")', "assert"),
        ('self.warning("the batch size is wrong")', "warning"),
        ('@deprecated("the batch size is deprecated", category=FutureWarning)\ndef f(): ...', "warning"),
        ('print("the batch size is", a)\nraise error', "error"),
    ],
)
def test_the_kind_says_what_the_code_does_with_a_message(call: str, kind: str) -> None:
    assert only(call).kind == kind


@every_case(
    "call",
    [
        'logger.info("the batch size is fine")',
        'print("the batch size is fine")',
        "raise",
        "raise AttributeError(f\"'{type(self).__name__}' object has no attribute '{name}'\")",
    ],
)
def test_what_reports_no_problem_is_left_out(call: str) -> None:
    assert not list(messages_of(call))


def test_arguments_of_a_log_call_fill_its_percent_signs() -> None:
    assert only('logger.warning("%s of %s ranks failed", a, b.c)').template == "{a} of {b.c} ranks failed"


def condition(body: str) -> str:
    return only(f"def f(a, b, args):\n{body}").condition


RAISE = 'raise ValueError("the batch size is wrong")'


@every_case(
    ("body", "expected"),
    [
        (f"  if a % b != 0:\n    {RAISE}", "a % b != 0"),
        (f"  if a:\n    if b > 1:\n      {RAISE}", "a and b > 1"),
        (f"  if a == 1:\n    pass\n  else:\n    {RAISE}", "a != 1"),
        (f"  if a == 1:\n    pass\n  elif b:\n    pass\n  else:\n    {RAISE}", "a != 1 and (not b)"),
        (f"  if a and b:\n    return\n  {RAISE}", "not a or not b"),
        (f"  try:\n    pass\n  except KeyError:\n    {RAISE}", "except KeyError"),
        (f"  match a:\n    case 'x':\n      {RAISE}", "a matches 'x'"),
        (f"  for x in a:\n    if x is None:\n      {RAISE}", "x is None"),
        ('  assert a <= b, "the batch size is not what was expected"', "a > b"),
        ('  assert not a, "the batch size is not what was expected"', "a"),
        (f"  {RAISE}", ""),
    ],
)
def test_the_condition_is_the_one_under_which_the_message_is_reached(body: str, expected: str) -> None:
    assert condition(body) == expected


def test_conditions_of_an_outer_function_do_not_count_inside() -> None:
    message = only(f"class T:\n  if X:\n    def f(self):\n      {RAISE}")
    assert (message.function, message.condition) == ("T.f", "")


def test_a_long_condition_and_a_long_message_are_cut() -> None:
    test = " and ".join(f"condition_number_{number}" for number in range(20))
    message = only(f"if {test}:\n  raise ValueError({'word ' * 200!r})")
    assert message.condition.endswith("…")
    assert len(message.condition) <= 100
    assert len(message.template) <= 220


def test_a_file_that_cannot_be_parsed_has_no_messages() -> None:
    assert not list(messages_of("def f(:"))


def release_of(version: str, texts: dict[str, str]) -> SourceTree:
    return tree_of("trl", version, "wheel", {path: text.encode() for path, text in texts.items()})


def release(version: str, **files: str) -> SourceTree:
    return release_of(version, {f"trl/{name}.py": text for name, text in files.items()})


def test_a_message_has_the_range_of_releases_that_have_it_and_the_place_of_the_last() -> None:
    raising, later = RAISE, f"import os\n\n{RAISE}"
    versions, entries = collected(
        [release("0.1", a=raising), release("0.2", a=later), release("0.3", a="pass", b="pass")], TRL
    )
    written = MessageTable.of(table(TRL, versions, entries))
    (entry,) = written
    assert (entry.first, entry.last, entry.is_oldest, entry.is_newest) == ("0.1", "0.2", True, False)
    assert entry.places == (Place("trl/a.py", 3, "", ""),)


def test_tests_and_other_folders_are_left_out() -> None:
    assert collected([release_of("0.1", {"docs/a.py": RAISE, "trl/tests/a.py": RAISE})], TRL)[1] == {}


def models(*names: str, says: str = RAISE) -> SourceTree:
    folder = "transformers/models"
    return release_of("5.0.0", {f"{folder}/{name}/modeling_{name}.py": says.replace("MODEL", name) for name in names})


def test_a_message_of_one_model_alone_is_left_out_and_one_of_several_is_listed() -> None:
    about = package("transformers")
    assert collected([models("a", "b")], about)[1] == {}
    (entry,) = collected([models("a", "b", "c")], about)[1].values()
    assert entry.places[0][0] == "src/transformers/models/a/modeling_a.py"


def test_what_copies_of_a_model_say_with_their_own_names_is_one_message() -> None:
    says = 'raise ValueError(f"Padding on the right is wrong for MODEL. Call {x} first.")'
    (entry,) = collected([models("mistral", "qwen2", "phi3", says=says)], package("transformers"))[1].values()
    assert entry.places[0][1].template == "Padding on the right is wrong for {model}. Call {x} first."


def test_a_name_before_its_value_can_be_looked_up() -> None:
    source = 'assert n == len(scores), f"{key}: {len(values)=}, {len(scores)=}"'
    written = MessageTable.of(table(TRL, *collected([release("0.1", a=source)], TRL)))
    assert written.anchors() == ["len(values)="]
    assert written.template(0)[1] == len("{key}: ")


def test_an_assertion_needs_more_text_than_an_exception() -> None:
    assert not list(messages_of('assert a, "the batch size is wrong"'))


def test_the_same_message_with_other_variable_names_is_one() -> None:
    source = 'raise ValueError(f"the batch size {a} is wrong")\nraise ValueError(f"the batch size {b} is wrong")'
    assert len(collected([release("0.1", a=source)], TRL)[1]) == 1


def test_the_anchor_is_rare_and_not_touched_by_a_hole() -> None:
    source = "\n".join(
        f'raise ValueError(f"The value of {{x}}the batch size {word} is wrong here")'
        for word in ("one", "two", "three")
    )
    written = MessageTable.of(table(TRL, *collected([release("0.1", a=source)], TRL)))
    assert written.anchors() == ["batch size one", "batch size two", "batch size three"]
