"""Pages become pieces that users' own words find."""

from __future__ import annotations

from dataclasses import replace

from tests.shipped import shipped_cases, shipped_mechanisms, shipped_rules
from tests.store.knowledge import case, cases, glossary, rules
from trainmedic.kb.engine.mechanism import causes_of, origin_id
from trainmedic.kb.store.chunks import chunks, facts


def test_a_wrong_theory_is_found_with_the_reason_why_it_is_wrong() -> None:
    found = [c for c in chunks(cases().cases, rules(), glossary()) if c.part == "refutation"]
    assert any("lower the learning rate" in c.text and "the forward pass is nan" in c.text for c in found)
    assert {c.language for c in found} == {"en", "zh"}


def test_what_is_embedded_opens_with_the_english_gist() -> None:
    found = chunks(cases().cases, rules(), glossary())
    assert next(c for c in found if c.text == "训练时爆显存").embedded.startswith("out of memory. ")


def test_what_is_said_in_both_languages_is_embedded_once_but_symptoms_are_embedded_as_they_are() -> None:
    pieces = [c for c in chunks(cases().cases, rules(), glossary()) if c.cases == ("kto-nan",)]
    english, chinese = (c for c in pieces if c.part == "refutation")
    assert "降低学习率" in chinese.text
    assert chinese.embedded == english.embedded
    assert any(c.embedded.endswith("kto 损失变成 nan") for c in pieces if c.part == "symptom")


def test_drafts_give_no_pieces() -> None:
    assert chunks([case("d", ["x"], status="draft")], rules(), glossary()) == ()


def test_a_case_says_its_facts_as_words() -> None:
    words = facts(case("c", ["x"], algorithms=("kto",), settings=("vanilla_loss",), affected={"trl": "<0.9"})).split()
    assert {"trl", "kto", "vanilla_loss", "<0.9"} <= set(words)


def test_ids_are_unique_and_the_order_does_not_depend_on_the_order_of_pages() -> None:
    pages, loaded = shipped_cases(), shipped_rules()
    found = chunks(pages.cases, loaded, glossary())
    assert len({c.id for c in found}) == len(found)
    assert chunks(tuple(reversed(pages.cases)), loaded, glossary()) == found


def test_an_origin_is_found_by_its_own_words_and_by_what_to_change() -> None:
    (mechanism, *_) = (m for m in shipped_mechanisms().mechanisms if any(o.symptoms for o in m.origins))
    origin = next(o for o in mechanism.origins if o.symptoms)
    (found, _) = chunks([c for c in causes_of(mechanism) if c.id == origin_id(mechanism, origin)], rules(), glossary())
    assert all(words in found.text for words in (origin.title.en, origin.symptoms["en"][0], origin.fix.en))


def test_a_rule_leads_to_its_published_cases_only() -> None:
    pages, loaded = shipped_cases(), shipped_rules()
    rule = next(rule for rule in loaded.rules if rule.cases)
    drafts = [replace(c, status="draft") if c.id in rule.cases else c for c in pages.cases]
    assert any(c.id == f"rule:{rule.id}" for c in chunks(pages.cases, loaded, glossary()))
    assert not any(c.id == f"rule:{rule.id}" for c in chunks(drafts, loaded, glossary()))
