"""Canonical settings are written in the framework's own words of that release."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.frameworks.spelling import Spelling, spelling
from trainmedic.kb.frameworks.values import normalise
from trainmedic.kb.model.run import Origin, Value


@every_case(
    ("framework", "name", "value", "version", "key", "raw"),
    [
        ("openrlhf", "attention", "eager", "0.8.11", "attn_implementation", "eager"),
        ("openrlhf", "attention", "eager", "0.11.0", "ds.attn_implementation", "eager"),
        ("openrlhf", "attention", "flash2", "0.8.5", "flash_attn", None),
        ("openrlhf", "weights_dtype", "bf16", "0.8.5", "bf16", None),
        ("openrlhf", "weights_dtype", "bf16", "0.10.1", "param_dtype", "bf16"),
        ("openrlhf", "micro_batch", 2, "0.3.3", "micro_train_batch_size", "2"),
        ("openrlhf", "micro_batch", 2, "0.11.0", "train.micro_batch_size", "2"),
        ("llamafactory", "attention", "eager", "0.9.2", "flash_attn", "disabled"),
        ("llamafactory", "attention", "flash2", "0.9.2", "flash_attn", "fa2"),
        ("llamafactory", "gradient_checkpointing", True, "0.9.2", "disable_gradient_checkpointing", "false"),
        ("ms-swift", "attention", "eager", "3.1.0", "attn_impl", "eager"),
        ("ms-swift", "sequence_parallel", 1, "3.1.0", "sequence_parallel_size", "1"),
        ("trl", "attention", "eager", "0.12.2", "attn_implementation", "eager"),
        ("trl", "weights_dtype", "bf16", "0.12.2", "torch_dtype", "bfloat16"),
        ("trl", "weights_dtype", "bf16", "1.9.0", "dtype", "bfloat16"),
        ("trl", "bf16", True, "0.12.2", "bf16", "true"),
        ("trl", "learning_rate", 1e-6, None, "learning_rate", "1e-6"),
        ("axolotl", "attention", "eager", "0.10.0", "eager_attention", "true"),
        ("axolotl", "attention", "eager", "0.18.0", "attn_implementation", "eager"),
        ("verl", "num_generations", 8, None, "actor_rollout_ref.rollout.n", "8"),
    ],
)
def test_a_setting_is_written_as_the_release_spells_it(
    framework: str, name: str, value: Value, version: str | None, key: str, raw: str | None
) -> None:
    found = spelling(framework, name, value, version)
    assert found is not None
    assert (found.key, found.raw) == (key, raw)


def test_a_switch_is_turned_off_by_leaving_it_out() -> None:
    assert spelling("openrlhf", "attention", "eager", "0.8.5") == Spelling(key=None, raw=None, drop=("flash_attn",))
    assert spelling("openrlhf", "vanilla_loss", False, "0.3.3") == Spelling(key=None, raw=None, drop=("vanilla_loss",))


def test_other_spellings_are_removed() -> None:
    found = spelling("axolotl", "attention", "eager", "0.10.0")
    assert found is not None
    assert "flash_attention" in found.drop


def test_text_fits_the_file_format() -> None:
    def raw(framework: str, name: str, value: Value, origin: Origin) -> str | None:
        found = spelling(framework, name, value, None, origin)
        assert found is not None
        return found.raw

    assert raw("llamafactory", "learning_rate", 1e-6, Origin.YAML) == "1.0e-6"
    assert raw("trl", "weights_dtype", "bf16", Origin.PYTHON) == '"bfloat16"'
    assert raw("trl", "bf16", True, Origin.PYTHON) == "True"
    assert raw("trl", "bf16", True, Origin.JSON) == "true"
    assert raw("trl", "learning_rate", 2e-5, Origin.PYTHON) == "2e-5"


def test_what_a_framework_cannot_say_is_not_written() -> None:
    assert spelling("trl", "sequence_parallel", 1, "0.12.2") is None
    assert spelling("openrlhf", "vanilla_loss", False, "0.8.11") is None
    assert spelling("trl", "no such setting", 1) is None
    assert spelling("openrlhf", "attention", "sdpa", "0.8.5") is None


@every_case("word", ["eager", "sdpa", "flash2"])
@every_case("framework", ["openrlhf", "trl", "llamafactory", "ms-swift"])
def test_what_is_written_reads_back_as_the_same(framework: str, word: str) -> None:
    found = spelling(framework, "attention", word)
    assert found is not None
    assert found.raw is not None
    how = "llamafactory_attention" if framework == "llamafactory" else ""
    assert normalise("attention", how, found.raw) == word


def written(name: str, value: Value, version: str | None = None, **more: str) -> tuple[str | None, str | None]:
    found = spelling("trl", name, value, version, Origin.PYTHON, algorithm="reward", **more)
    assert found is not None
    return found.key, found.raw


def test_the_users_own_key_is_kept_unless_the_release_is_known_to_lack_it() -> None:
    def key(version: str | None) -> str | None:
        found = spelling("trl", "weights_dtype", "bf16", version, algorithm="reward", prefer="torch_dtype")
        return None if found is None else found.key

    assert (key(None), key("0.12.0"), key("1.9.0")) == ("torch_dtype", "torch_dtype", "dtype")


def test_a_call_of_another_library_is_written_in_its_words() -> None:
    assert written("peft_task_type", "SEQ_CLS", scope="LoraConfig") == ("task_type", '"SEQ_CLS"')
    assert written("weights_dtype", "bf16", scope="from_pretrained") == ("torch_dtype", "torch.bfloat16")
    assert written("weights_dtype", "auto", scope="from_pretrained", prefer="dtype") == ("dtype", '"auto"')
    assert written("bnb_4bit_compute_dtype", "bf16", scope="BitsAndBytesConfig")[1] == "torch.bfloat16"


def test_a_release_without_the_command_stands_for_the_last_one_with_it() -> None:
    found = spelling("openrlhf", "micro_batch", 2, "0.10.1", algorithm="kto")
    assert found == Spelling(key="micro_train_batch_size", raw="2")
    newest = spelling("openrlhf", "micro_batch", 2, None, algorithm="kto")
    assert newest == found


def test_what_a_class_has_from_training_arguments_can_be_written() -> None:
    assert written("learning_rate", 1e-6, "0.16.0") == ("learning_rate", "1e-6")
