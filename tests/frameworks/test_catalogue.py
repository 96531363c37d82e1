"""What the catalogues say, and that they are written as they are read."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.book import book_of, text_of
from trainmedic.kb.frameworks.tables import table


@every_case("framework", catalogue.frameworks())
def test_what_is_shipped_is_written_as_it_is_read(framework: str) -> None:
    known = table(framework)
    assert known is not None
    assert text_of(book_of(known)) == known.text


def test_a_flag_has_its_type_owner_and_life() -> None:
    flag = catalogue.option("openrlhf", "vanilla_loss", "0.3.1")
    assert flag is not None
    assert flag.switch
    assert flag.boolean
    assert (flag.default, flag.owners, flag.first, flag.last) == (False, ("train_kto",), "0.1.9", "0.3.3")


@every_case(
    ("framework", "key", "version", "there"),
    [
        ("openrlhf", "vanilla_loss", "0.1.8", False), ("openrlhf", "vanilla_loss", "0.1.9", True),
        ("openrlhf", "vanilla_loss", "0.3.4", False), ("openrlhf", "flash_attn", "0.8.9.post1", True),
        ("openrlhf", "flash_attn", "0.8.10", False), ("openrlhf", "attn_implementation", "0.8.10", True),
        ("openrlhf", "ds.attn_implementation", "0.10.2", True), ("openrlhf", "no_such_flag", "0.10.2", False),
        ("trl", "evaluation_strategy", "1.9.0", False), ("transformers", "evaluation_strategy", "4.51.0", None),
        ("transformers", "evaluation_strategy", "4.46.0", True), ("ms-swift", "train_type", "4.1.0", False),
        ("llamafactory", "per_device_train_batch_size", None, True), ("openrlhf", "vanilla_loss", None, None),
        ("nobody", "x", "1.0", None),
    ],
)  # fmt: skip
def test_an_option_exists_at_a_release_or_it_cannot_be_told(
    framework: str, key: str, version: str | None, there: bool | None
) -> None:
    assert catalogue.exists(framework, key, version) is there
    if there is False:
        assert catalogue.option(framework, key, version) is None


@every_case(
    ("framework", "version", "stands_for"),
    [
        ("openrlhf", "0.8.10", "0.8.5"), ("openrlhf", "0.1.9", "0.1.10"), ("openrlhf", "v0.11.0", "0.11.0"),
        ("trl", "0.12.0", "0.12.2"), ("trl", "0.13.0", "0.12.2"), ("trl", "0.19.0", "0.19.1"),
        ("trl", "99.0", catalogue.versions("trl")[-1]), ("ms-swift", "3.1.0", "3.0.0"), ("ms-swift", "2.5.0", "2.6.1"),
        ("transformers", "4.46.2", "4.46.3"),
    ],
)  # fmt: skip
def test_the_catalogued_release_that_stands_for_another(framework: str, version: str, stands_for: str) -> None:
    assert catalogue.nearest(framework, version) == stands_for


def test_defaults_change_where_the_sources_say() -> None:
    def default(framework: str, key: str, version: str) -> object:
        found = catalogue.option(framework, key, version)
        assert found is not None
        return found.default

    assert default("ms-swift", "rpo_alpha", "3.6.0") == 1.0
    assert default("ms-swift", "rpo_alpha", "3.8.0") is None
    assert default("openrlhf", "attn_implementation", "0.8.11") == "flash_attention_2"
    assert default("llamafactory", "cutoff_len", "0.9.0") == 1024
    assert default("llamafactory", "cutoff_len", "0.9.1") == 2048
    assert default("trl", "dtype", "0.27.2") == "float32"
    assert default("trl", "torch_dtype", "0.12.2") is None


def test_an_abbreviation_works_where_argparse_takes_it() -> None:
    found = catalogue.option("openrlhf", "max_ep", "0.8.11", owner="train_dpo")
    assert found is not None
    assert (found.key, found.abbreviated) == ("max_epochs", True)
    assert catalogue.option("openrlhf", "max_", "0.8.11", owner="train_dpo") is None
    assert catalogue.option("verl", "trainer.total_epo", "0.9.0") is None


def test_dashes_stand_for_underscores_only_where_the_parser_says_so() -> None:
    inherited = catalogue.option("trl", "per-device-train-batch-size", "0.12.2")
    assert inherited is not None
    assert (inherited.framework, inherited.key) == ("transformers", "per_device_train_batch_size")
    assert catalogue.option("openrlhf", "zero-stage", "0.8.11") is None


def test_a_no_switch_negates_a_boolean_that_is_on() -> None:
    found = catalogue.option("trl", "no_gradient_checkpointing", "0.24.0")
    assert found is not None
    assert found.negated
    assert catalogue.option("trl", "no_packing", "0.24.0") is None


@every_case(
    ("framework", "keys", "low", "high"),
    [
        ("openrlhf", ["vanilla_loss", "micro_train_batch_size"], "0.1.9", "0.3.3"),
        ("openrlhf", ["ds.zero_stage"], "0.10.2", None),
        ("openrlhf", ["unknown_to_all"], None, None),
        ("openrlhf", ["vanilla_loss", "ds.zero_stage"], None, None),
        ("ms-swift", ["tuner_type"], "4.0.0", None),
        ("nobody", ["x"], None, None),
    ],
)
def test_the_options_used_bound_the_version(framework: str, keys: list[str], low: str | None, high: str | None) -> None:
    found = catalogue.infer_versions(framework, keys)
    assert found[:2] == (low, high)
    assert bool(found[2]) == (low is not None or high is not None or len(keys) > 1)


@every_case(
    ("framework", "key", "version", "expected", "why"),
    [
        ("openrlhf", "flash_attn", "0.9.5", "attn_implementation", "renamed"),
        ("openrlhf", "zero_stage", "0.11.0", "ds.zero_stage", "renamed"),
        ("openrlhf", "learnin_rate", None, "learning_rate", "spelling"),
        ("openrlhf", "vanilla_loss", "0.8.0", "vanilla_loss", "removed"),
        ("openrlhf", "nll_loss_coef", "0.1.1", "nll_loss_coef", "later"),
        ("verl", "data.train_batchsize", None, "data.train_batch_size", "spelling"),
        ("axolotl", "context_parapllel_size", None, "context_parallel_size", "spelling"),
        ("openrlhf", "enable_vllm_is_correction_", None, "enable_vllm_is_correction", "spelling"),
    ],
)
def test_an_unknown_option_gets_a_suggestion(
    framework: str, key: str, version: str | None, expected: str, why: str
) -> None:
    found = catalogue.suggest(framework, key, version)
    assert found is not None
    assert (found.key, found.why) == (expected, why)


def test_an_option_of_another_framework_is_said_to_be_one() -> None:
    found = catalogue.suggest("openrlhf", "kto_chosen_weight")
    assert found is not None
    assert (found.why, found.framework) == ("framework", "llamafactory")
    assert catalogue.suggest("openrlhf", "qqqqqqqqqq") is None


def test_a_pin_is_certain_only_at_or_between_equal_releases() -> None:
    assert catalogue.pins("openrlhf", "0.5.9")["transformers"] == "==4.48.2"
    assert "flash-attn" not in catalogue.pins("openrlhf", "0.5.1")
    assert catalogue.pins("openrlhf", "99.0") == {}


def test_no_catalogue_no_answer() -> None:
    assert catalogue.versions("nobody") == ()
    assert catalogue.versions("../secrets") == ()
    assert catalogue.keys("nobody") == ()
    assert catalogue.nearest("nobody", "1.0") is None
    assert catalogue.option("nobody", "x") is None
    assert catalogue.suggest("nobody", "x") is None


def test_history_and_keys_agree() -> None:
    lives = catalogue.history("openrlhf")
    assert lives["vanilla_loss"] == catalogue.Life(first="0.1.9", last="0.3.3")
    assert "vanilla_loss" in catalogue.keys("openrlhf", "0.3.3")
    assert "vanilla_loss" not in catalogue.keys("openrlhf", "0.3.4")
    assert lives["critic_pretrain"].gap


def test_the_commands_of_a_release_are_those_that_have_options_there() -> None:
    assert "train_kto" in catalogue.commands("openrlhf", "0.8.11")
    assert "train_kto" not in catalogue.commands("openrlhf", "0.11.0")
    assert catalogue.commands("no such framework", "1.0") == frozenset()
