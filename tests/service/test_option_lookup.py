"""Descriptions of options from the catalogues."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.frameworks import catalogue
from trainmedic.service.diagnosis.option_lookup import catalogue_name, describe_option


@every_case(
    ("name", "found"),
    [("trl", "trl"), (" TRL ", "trl"), ("unsloth", "trl"), ("LLaMA-Factory", "llamafactory"), ("swift", "ms-swift")],
)
def test_a_catalogue_is_found_under_the_names_that_people_write(name: str, found: str) -> None:
    assert catalogue_name(name) == found
    assert catalogue_name("excel") is None


@every_case("language", ["en", "zh"])
@every_case("framework", catalogue.frameworks())
def test_every_option_of_the_newest_release_is_described_in_both_languages(framework: str, language: str) -> None:
    newest = catalogue.versions(framework)[-1]
    for key in catalogue.keys(framework, newest)[::25]:
        description = describe_option(framework, key, newest, language)
        assert description.exists
        assert key in description.text
        assert newest in description.text
        assert "{" not in description.text.replace(str(_default(framework, key, newest)), "")


def test_type_default_and_lifetime_are_described() -> None:
    description = describe_option("trl", "--beta", "0.9.6", "en")
    assert description.option == "beta"
    assert "Its type is float. Its default is 0.1." in description.text
    assert "It exists since 0.8.0." in description.text
    assert "DPOConfig" in description.text


def test_without_a_release_the_newest_is_described() -> None:
    assert describe_option("trl", "beta", None, "en").version == catalogue.versions("trl")[-1]


def test_a_name_that_does_not_exist_comes_with_the_nearest_one() -> None:
    description = describe_option("trl", "learning_rat_", "0.9.6", "en")
    assert not description.exists
    assert description.text.startswith("The catalogue of trl 0.9.6 has no option learning_rat_.")
    assert "learning_rate" in description.text


def test_an_option_of_a_later_release_is_said_to_come_later() -> None:
    first = catalogue.versions("openrlhf")[0]
    key, life = next(
        (key, life)
        for key, life in catalogue.history("openrlhf").items()
        if (found := catalogue.suggest("openrlhf", key, first)) is not None and found.why == "later"
    )
    description = describe_option("openrlhf", key, first, "en")
    assert not description.exists
    assert f"It was added in {life.first}." in description.text


def test_a_renamed_option_is_description_under_both_names() -> None:
    framework, step = next(
        (framework, step)
        for framework in catalogue.frameworks()
        for key in catalogue.keys(framework)
        for step in catalogue.renamed(framework, key)
    )
    description = describe_option(framework, step.new, None, "en")
    assert f"{step.old} became {step.new} between {step.last_old} and {step.first_new}." in description.text


def _default(framework: str, key: str, version: str) -> object:
    info = catalogue.option(framework, key, version)
    return info.default if info else None
