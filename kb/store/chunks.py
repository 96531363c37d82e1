"""Chunks of the pages for the index, with the text to search and the text to embed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.case import Case

LANGUAGES = ("en", "zh")
MAX_SECTION = 1_200
"""Code points of a section that are embedded: about 256 tokens, the model's limit."""
Embed = Callable[[str], str]
"""A text to what is embedded of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One chunk. ``part`` is its kind: symptom, title, section, refutation, facts, origin, defect, rule.

    ``text`` is for the lexical index, ``embedded`` for the embedder: it begins with the glossary's English gist,
    because the default model knows few Chinese characters. What is said in both languages is embedded in English for
    both, which finds as much, and takes two thirds of the time.
    """

    id: str
    cases: tuple[str, ...]
    part: str
    language: str
    text: str
    embedded: str


def chunks(
    cases: Iterable[Case], rules: RuleSet, glossary: Glossary, ids: Callable[[str], Iterable[str]] | None = None
) -> tuple[Chunk, ...]:
    """The chunks of all published causes and of all rules with a title of their own, in the order of their ids.

    ``ids`` is the glossary's, if they are needed again.
    """
    ids_of = ids or glossary.ids

    def embed(text: str) -> str:
        """The gist in English, then the text."""
        gist = glossary.gist(ids_of(text))
        return f"{gist}. {text}" if gist else text

    published = sorted((case for case in cases if case.status == "published"), key=lambda case: case.id)
    known = {case.id: case for case in published}
    pieces = [chunk for case in published for chunk in OF_LEVEL.get(case.level, of_case)(case, embed)]
    for rule in sorted(rules.rules, key=lambda rule: rule.id):
        rule_cases = tuple(case for case in rule.cases if case in known)
        if rule_cases and rule.title != known[rule_cases[0]].title:  # a page of one check has its title
            pieces.append(of_rule(rule, rule_cases, embed))
    return tuple(pieces)


def of_case(case: Case, embed: Embed) -> Sequence[Chunk]:
    """One case's chunks. Each symptom is a chunk of its own, because users word their questions like symptoms."""
    pieces: list[Chunk] = []

    def add(part: str, language: str, text: str, english: str = "") -> None:
        if text.strip():
            pieces.append(
                Chunk(
                    id=f"{case.id}#{len(pieces)}",
                    cases=(case.id,),
                    part=part,
                    language=language,
                    text=text,
                    embedded=embed(english or text),
                )
            )

    def section(name: str, language: str) -> str:
        text = case.section(name, language)
        return f"{case.title.get(language)}\n{text[:MAX_SECTION]}" if text else ""

    for language in case.languages:
        add("title", language, case.title.get(language))
        for symptom in case.symptoms.get(language, ()):
            add("symptom", language, symptom)
        for name in ("symptom", "cause", "fix", "confirm"):
            add("section", language, section(name, language), section(name, "en"))
        for refutation in case.refutations:
            # Users ask about wrong theories too, and must find the refutation.
            english = f"{refutation.claim.en} {refutation.why.en}"
            add("refutation", language, f"{refutation.claim.get(language)} {refutation.why.get(language)}", english)
    add("facts", "en", facts(case))
    return pieces


def of_origin(case: Case, embed: Embed) -> Sequence[Chunk]:
    """An origin's chunks: what it is, how users word it and what to change. What happens is its mechanism's to say."""
    texts = {
        language: "\n".join((case.title.get(language), *case.symptoms.get(language, ()), case.section("fix", language)))
        for language in LANGUAGES
    }
    return _one_each(case, texts, embed)


def of_defect(case: Case, embed: Embed) -> Sequence[Chunk]:
    """A known defect's chunks: what it does and how users word it, with the names that it touches."""
    names = " ".join((*case.affected, *case.settings))
    texts = {
        language: "\n".join((case.title.get(language), *case.symptoms.get(language, ()), names))
        for language in LANGUAGES
    }
    return _one_each(case, texts, embed)


def _one_each(case: Case, texts: Mapping[str, str], embed: Embed) -> list[Chunk]:
    return [
        Chunk(
            id=f"{case.id}#{number}",
            cases=(case.id,),
            part=case.level,
            language=language,
            text=text,
            embedded=embed(texts["en"]),
        )
        for number, (language, text) in enumerate(texts.items())
    ]


OF_LEVEL: Mapping[str, Callable[[Case, Embed], Sequence[Chunk]]] = MappingProxyType(
    {"origin": of_origin, "defect": of_defect}
)
"""How the causes of a level are cut where it is not as a case."""


def of_rule(rule: Rule, cases: tuple[str, ...], embed: Embed) -> Chunk:
    """One rule's chunk: its title in both languages, and its condition for the names of settings."""
    text = f"{rule.title.en}\n{rule.title.zh}\n{rule.when}"
    return Chunk(id=f"rule:{rule.id}", cases=cases, part="rule", language="en", text=text, embedded=embed(text))


def facts(case: Case) -> str:
    """The structured fields as words: frameworks, algorithms, settings, signals, packages."""
    words = (*case.frameworks, *case.algorithms, *case.stages, *case.model_families, *case.settings, *case.signals)
    packages = [f"{package} {affected}" for package, affected in sorted(case.affected.items())]
    return " ".join((*words, *packages))
