"""How far knowledge reaches, and what is said beyond."""

from __future__ import annotations

import json

import pytest

from tests.every_case import every_case
from trainmedic.kb.audit.audit import Doubt
from trainmedic.kb.audit.audit import audit as defects_of
from trainmedic.kb.data_files import load_table, load_texts
from trainmedic.kb.engine.assumed import Assumed
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.frameworks import catalogue, horizon
from trainmedic.kb.frameworks.defaults import candidates, defaults
from trainmedic.kb.frameworks.horizon import Kind, Standing, horizons, standing
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.frameworks.tables import OPTIONS, Table, side, table
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.pages.defect import DEFECTS, defect_packages, load_defects
from trainmedic.service.answer.horizon import sentence
from trainmedic.ui.auditing import audit
from trainmedic.ui.checking import check


def fact(package: str, exact: str | None, low: str | None = None, high: str | None = None) -> VersionFact:
    return VersionFact(package=package, exact=exact, reason="", low=low, high=high)


@every_case(
    ("version", "options", "defects"),
    [
        (fact("trl", "1.9.0"), Standing.READ, Standing.READ),
        (fact("trl", "v1.9.0+cu124"), Standing.READ, Standing.READ),
        (fact("trl", "0.13.0"), Standing.BETWEEN, Standing.READ),
        (fact("trl", "99.0"), Standing.NEWER, Standing.NEWER),
        (fact("trl", "99.0.dev0"), Standing.NEWER, Standing.NEWER),
        (fact("trl", None, low="99.0"), Standing.NEWER, Standing.NEWER),
        (fact("trl", None, high="99.0"), Standing.UNKNOWN, Standing.UNKNOWN),
        (fact("trl", "0.1.0"), Standing.OLDER, Standing.READ),
        (fact("vllm", "99.0"), Standing.UNKNOWN, Standing.NEWER),
        (fact("torch", "99.0"), Standing.UNKNOWN, Standing.UNKNOWN),
    ],
)
def test_what_a_statement_about_a_version_rests_on(version: VersionFact, options: Standing, defects: Standing) -> None:
    assert (standing(version, Kind.OPTIONS), standing(version, Kind.DEFECTS)) == (options, defects)


def test_a_release_between_two_has_the_defaults_on_which_they_agree() -> None:
    def at(release: str) -> object:
        found = defaults("ms-swift", (release,), ("rlhf",), "dpo", None)
        return {name: found[name].value for name in ("rpo_alpha", "micro_batch") if name in found}

    assert at("3.6.0") == {"rpo_alpha": 1.0, "micro_batch": 1}
    assert at("3.7.3") == {"micro_batch": 1}
    assert at("3.8.0") == {"rpo_alpha": None, "micro_batch": 1}
    assert "as in 3.6.0 and 3.8.0" in defaults("ms-swift", ("3.7.3",), ("rlhf",), "dpo", None)["micro_batch"].source


@every_case(
    ("framework", "version", "transformers"),
    [("trl", fact("trl", "99.0"), None), ("trl", fact("trl", "0.1.0"), None), ("trl", fact("trl", None, "99.0"), None)],
)
def test_a_release_beyond_has_no_defaults(framework: str, version: VersionFact, transformers: str | None) -> None:
    assert not defaults(framework, candidates(framework, version), ("GRPOConfig",), "grpo", transformers)


def test_what_is_inherited_from_a_release_beyond_is_not_stated() -> None:
    newest = catalogue.versions("trl")[-1:]
    known = defaults("trl", newest, ("GRPOConfig",), "grpo", "5.5.3")
    beyond = defaults("trl", newest, ("GRPOConfig",), "grpo", "99.0")
    assert beyond["max_completion_length"].value == known["max_completion_length"].value
    assert "warmup_steps" in known
    assert "warmup_steps" not in beyond


def test_a_release_that_is_read_on_demand_counts_as_read(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *lines = load_texts(OPTIONS)["trl"].split("\n")
    head = json.loads(first)
    for name in ("versions", "examined"):
        head[name].append("99.0")
    more = Table("\n".join((json.dumps(head), *lines)))
    monkeypatch.setattr(horizon, "table", {"trl": more}.get)
    newer = fact("trl", "99.0")
    assert standing(newer, Kind.OPTIONS) is Standing.READ
    assert [[bound.kind for bound in each.bounds] for each in horizons({"trl": newer})] == [[Kind.DEFECTS]]


def test_every_release_that_is_held_has_a_date() -> None:
    for name in catalogue.frameworks():
        if profiles()[name].kind != "options":
            known = table(name)
            assert known is not None
            assert side("dates")[name].keys() == {*known.versions, *known.examined}, name


def test_defects_are_collected_up_to_a_release_with_the_date_of_the_catalogues() -> None:
    listed = {path.name for path in DEFECTS.iterdir() if path.is_dir() and any(path.glob("*.yaml"))}
    assert listed == {name for name, entry in defect_packages().items() if "collected" in entry}
    for name, entry in load_table("defects/packages.toml").items():
        if "collected" in entry:
            release, date = entry["collected"]["release"], entry["collected"]["date"].isoformat()
            assert side("dates").get(name, {}).get(release, date) == date


@every_case(
    ("version", "en", "zh"),
    [
        (fact("trl", "99.0"), "TRL is known up to {last}", "TRL 的知识截至"),
        (fact("vllm", "99.0"), "Defects of vLLM are known up to {last}; 99.0 is newer", "vLLM 的已知缺陷截至 {last}"),
        (fact("trl", "0.1.0"), "known from 0.7.11 (2024-02-16) on; 0.1.0 is older", "从 0.7.11 (2024-02-16) 起"),
    ],
)
def test_one_sentence_says_where_knowledge_ends(version: VersionFact, en: str, zh: str) -> None:
    (found,) = horizons({version.package: version})
    last = f"{found.bounds[0].release} ({found.bounds[0].date})"
    assert en.format(last=last) in sentence(found, "en")
    assert zh.format(last=last) in sentence(found, "zh")


def test_an_audit_of_a_newer_release_is_no_clean_bill() -> None:
    view = audit("trl==99.0\npeft==0.20.0\n")
    assert [(item.package, item.asked) for item in view.horizon] == [("trl", "99.0")]
    assert not [item.id for item in view.defects if item.certain]
    assert all("newer" in item.doubts for item in view.defects if item.package == "trl" and item.fixed is None)


GRPO = "trl grpo --model_name_or_path Qwen/Qwen3-0.6B --dataset_name x/y --output_dir out"


def test_a_rule_that_rests_on_an_unread_default_asks_for_the_value() -> None:
    view = check(GRPO, "trl==99.0\n")
    (found,) = [item for item in view.findings if item.rule_id == "rl-default-completion-cuts-reasoning"]
    assert found.status == "cannot_tell"
    assert "Its default in TRL 99.0 is not known" in found.missing[0].ask
    assert not [name for name, setting in view.run.settings.items() if setting.default and "default" in setting.source]


def test_a_written_value_is_judged_in_any_release() -> None:
    for release in ("1.9.0", "99.0"):
        fired = [item.rule_id for item in check(f"{GRPO} --beta -1", f"trl=={release}\n").fired]
        assert "rl-kl-coefficient-negative" in fired


def test_a_defect_without_a_fix_may_be_repaired_in_a_release_that_nobody_looked_through() -> None:
    unfixed = [each for each in load_defects().all if each.fixed is None]
    evidence = Evidence(versions={each.package: fact(each.package, "9999.0") for each in unfixed})
    matches = defects_of(unfixed, evidence)
    assert matches
    assert all(Doubt.NEWER in match.doubts for match in matches)


def test_of_a_setting_that_is_not_a_default_nothing_is_told() -> None:
    (horizon_of_trl,) = horizons({"trl": fact("trl", "99.0")}, ("trl",))
    assert Assumed(facts=Facts(Evidence()), horizon=horizon_of_trl).note("learning_rate") is None
