"""Did you mean."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.suggest import closest, distance, is_slip


def test_swapped_neighbours_are_one_edit() -> None:
    assert distance("lora_dropuot", "lora_dropout", 3) == 1
    assert distance("alpha", "omega", 2) == 3


@every_case(
    ("name", "candidates", "meant"),
    [
        ("lora_dropuot", ["lora_dropout", "lora_rank"], "lora_dropout"),
        ("rank_lora", ["lora_rank"], "lora_rank"),
        ("learning_rate", ["adam.learning_rate", "adam.beta"], "adam.learning_rate"),
        ("learning_rate", ["actor.learning_rate", "critic.learning_rate"], None),
        ("lr", ["learning_rate"], None),
        ("beta", ["zeta", "seta"], "seta"),
    ],
)
def test_the_nearest_name_is_suggested(name: str, candidates: list[str], meant: str | None) -> None:
    assert closest(name, candidates) == meant
    assert closest(name, reversed(candidates)) == meant


def test_the_limit_bounds_the_edits() -> None:
    assert closest("sedd", ["seed"], limit=1) == "seed"
    assert closest("sdde", ["seed"], limit=1) is None


def test_a_name_that_lacks_a_word_is_completed_on_request() -> None:
    names = ["llm_base_url", "llm_url_timeout", "port"]
    assert closest("llm_url", names) is None
    assert closest("llm_url", names, partial=True) == "llm_base_url"


def test_another_word_is_no_slip() -> None:
    assert is_slip("num_completoins", "num_completions")
    assert is_slip("rank_lora", "lora_rank")
    assert is_slip("flashattn", "flash_attn")
    assert not is_slip("num_completions", "log_completions")
