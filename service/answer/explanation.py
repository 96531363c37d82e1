"""The answer to a question that is not an incident: cards of options, versions that fit, known defects. Pure.

Everything said is a framework's own (catalogues, requirements, help), a page's (cited) or the glossary's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby

from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.fences import fence_after
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.canonical import name_of
from trainmedic.kb.frameworks.card import COMPUTED, REQUIRED, Card, Stretch, best_known, card
from trainmedic.kb.frameworks.entries import owners
from trainmedic.kb.frameworks.profiles import ALGORITHMS, profiles, title
from trainmedic.kb.frameworks.settings import index, specs
from trainmedic.kb.lazy import regex
from trainmedic.kb.learning_rates import PAGE
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.run import Value
from trainmedic.kb.sentences import sentences
from trainmedic.kb.versions import version_key
from trainmedic.service.answer.citations import code, place
from trainmedic.service.answer.horizon import release_text, sentence
from trainmedic.service.answer.learning_rate import beside_usual, usual_rates
from trainmedic.service.answer.package_facts import (
    OnPage,
    between,
    defect_list,
    fits,
    joined_names,
    matches,
    named,
    problems_text,
    upgrades,
)
from trainmedic.service.answer.passages import Sections, listing, plain
from trainmedic.service.answer.schema import Section
from trainmedic.service.answer.text import word_count
from trainmedic.service.dialogue.inquiry import Inquiry, Subject
from trainmedic.service.dialogue.vocabulary import wordings

MAX_PAGES, MAX_RULES, MAX_RANGES, MAX_NEAREST = 3, 2, 4, 3
MAX_OTHERS, MAX_ELSEWHERE, MAX_STRETCHES, MAX_DIFFERING = 4, 5, 4, 8
MAX_DEFECTS = 5
LEAST_WORDS, LONGEST_SENTENCE = 6, 300
_GAP = r"[^0-9A-Za-z.;。；×]{0,6}"
VALUE = rf"(?![A-Za-z0-9_]){_GAP}(?:of|to|at|about|around|up to|is|from|between)?{_GAP}[0-9]"
"""Pattern of the text after a name that is given a value."""
_VALUED = regex(r"(?<![\w.])(?:[0-9.]*[1-9][0-9.]*(?:e-?[0-9]+)?)(?![\w-])")
about = load_messages("trainmedic.kb.glossary", "about.toml")
"""Texts on the concepts of the glossary."""


def lead(page: OnPage) -> Sections:
    inquiry = _inquiry(page)
    match inquiry.kind:
        case "versions":
            one = "explained.fits_one" if len(inquiry.packages) == 1 else "explained.fits"
            name = one if fits(inquiry, page) else "explained.fits_unknown"
            better = upgrades(inquiry, page) if name == "explained.fits_unknown" and len(inquiry.packages) == 1 else []
            text = page.says(name, packages=joined_names([named(package) for package in inquiry.packages], page))
            text = "\n".join(better) if better else text
        case "problems":
            text = problems_text(inquiry, page)
        case "comparison" if len(inquiry.subjects) > 1:
            one, other = (subject.name for subject in inquiry.subjects)
            text = page.says("explained.compared", one=one, other=other)
        case _:
            text = _meant(inquiry.subjects[0], inquiry, page)
    return (Section(kind="lead", body=text),)


def lead_unexplained(page: OnPage) -> Sections:
    return (Section(kind="lead", body=page.says("explained.nothing")),)


def cards(page: OnPage) -> Sections:
    """A card for each thing asked about."""
    inquiry = _inquiry(page)
    sections: list[Section] = []
    for subject in inquiry.subjects:
        shown = _card(subject, inquiry)
        compares = inquiry.kind == "comparison" and len(inquiry.subjects) > 1
        if shown is None:
            sections += plain("term", _meant(subject, inquiry, page)) if compares else ()
            continue
        items, markers = _card_lines(shown, page, _meaning(shown, subject, page) if compares else "")
        heading = page.says("explained.heading", name=shown.info.key, framework=title(shown.info.framework))
        sections += [Section(kind="option", heading=heading, body=_bullets(items), items=items, markers=markers)]
    return tuple(sections)


def ranges(page: OnPage) -> Sections:
    """Statements of checks and pages on the values of an option."""
    inquiry = _inquiry(page)
    if inquiry.kind != "choice":
        return ()
    told = _usual_rates(page, inquiry)
    for subject in () if told else inquiry.subjects:
        for rule in _rules(page, subject, inquiry):
            for text in _advised(rule, page.language)[:1]:
                told.setdefault(text, partial(page.citations.rule_page, rule.id, rule.title))
        causes = _pages(page, subject, inquiry)
        for section in ("fix", "cause", "confirm"):
            for cause in causes:
                for text in _with_values(cause.section(section, page.language), subject, inquiry)[:1]:
                    told.setdefault(text, partial(page.citations.case, cause))
    shown = [(text, cite()) for text, cite in list(told.items())[:MAX_RANGES]]
    items = [f"{text} [{marker}]" for text, marker in shown]
    return page.headed("explained_ranges", listing("ranges", items, [marker for _, marker in shown]))


def _usual_rates(page: OnPage, inquiry: Inquiry) -> dict[str, Callable[[], int]]:
    """The usual learning rates, where the question is about them: what pages say of it is about their own cases."""
    asked = any(name_of(each.framework, each.key) == "learning_rate" for each in inquiry.subjects if each.key)
    cause = page.draft.knowledge.published.get(PAGE)
    if not asked or cause is None:
        return {}
    context, language = page.draft.context, page.language
    own = beside_usual(context, language)
    return {text: partial(page.citations.case, cause) for text in ((own,) if own else usual_rates(context, language))}


def pitfalls(page: OnPage) -> Sections:
    """The pages and checks about it, the nearest to the question first."""
    inquiry = _inquiry(page)
    items, markers = [], []
    for subject in inquiry.subjects:
        for cause in _pages(page, subject, inquiry)[:MAX_PAGES]:
            markers.append(page.citations.case(cause))
            items.append(f"{cause.title.get(page.language)} [{markers[-1]}]")
        for rule in _rules(page, subject, inquiry)[:MAX_RULES]:
            markers.append(page.citations.rule_page(rule.id, rule.title))
            items.append(f"{page.says('explained.check', title=rule.title.get(page.language))} [{markers[-1]}]")
    return page.headed("explained_pitfalls", listing("pitfalls", list(dict.fromkeys(items)), markers))


def differing(page: OnPage) -> Sections:
    """In what the options of two algorithms differ, in one framework's newest release that was read."""
    inquiry = _inquiry(page)
    names = [subject.concept for subject in inquiry.subjects if subject.concept in ALGORITHMS["mentions"]]
    if inquiry.kind != "comparison" or len(names) != 2:
        return ()
    for framework in (inquiry.framework,) if inquiry.framework else best_known():
        left, right = (_own_options(framework, name) for name in names)
        if left and right and left != right:
            break
    else:
        return ()
    newest = catalogue.versions(framework)[-1]
    items = []
    for mine, other, subject in ((left, right, inquiry.subjects[0]), (right, left, inquiry.subjects[1])):
        only = _known_first(framework, mine.keys() - other.keys())
        if only:
            items.append(
                page.says("explained.only", name=subject.name, options=joined_names([code(key) for key in only], page))
            )
    changed = _known_first(framework, {key for key in left.keys() & right.keys() if left[key] != right[key]})
    values = [f"{code(key)} {_value(left[key], page)} / {_value(right[key], page)}" for key in changed]
    if values:
        items.append(page.says("explained.defaults_differ", options=joined_names(values, page)))
    heading = page.says("explained.differing", framework=title(framework), version=newest)
    return (Section(kind="comparison", heading=heading, body=_bullets(items), items=tuple(items)),) if items else ()


def versions(page: OnPage) -> Sections:
    """The versions that fit together, and the known defects of one package that are about another."""
    inquiry = _inquiry(page)
    if inquiry.kind != "versions":
        return ()
    listed = page.headed("explained_requirements", listing("versions", fits(inquiry, page), ()))
    return (*listed, *defect_list(between(inquiry, page)[:MAX_PAGES], page, "explained_together"), *_advice(page))


def problems(page: OnPage) -> Sections:
    """The most harmful known defects."""
    inquiry = _inquiry(page)
    if inquiry.kind != "problems":
        return ()
    found = sorted(matches(inquiry, page), key=lambda match: not match.certain)
    better = page.headed("explained_upgrades", listing("versions", upgrades(inquiry, page), ()))
    return (*better, *defect_list(found[:MAX_DEFECTS], page, "explained_worst"), *_advice(page))


def _advice(page: OnPage) -> Sections:
    sent = any(fact.span is not None and fact.span.attachment for fact in page.draft.context.evidence.versions.values())
    return plain("advice", page.says("explained.audit_sent" if sent else "explained.audit"))


def nearest(page: OnPage) -> Sections:
    """The pages most like the question."""
    published = page.draft.knowledge.published
    items: list[str] = []
    markers: list[int] = []
    for cause in (published[name] for name in _inquiry(page).near if name in published):
        if cause.level in ("case", "mechanism") and len(items) < MAX_NEAREST:
            markers.append(page.citations.case(cause))
            items.append(f"{cause.title.get(page.language)} [{markers[-1]}]")
    return page.headed("explained_nearest", listing("nearest", items, markers))


def _inquiry(page: OnPage) -> Inquiry:
    assert page.draft.inquiry is not None
    return page.draft.inquiry


def _meant(subject: Subject, inquiry: Inquiry, page: OnPage) -> str:
    """What the first thing asked about is, in one sentence."""
    shown = _card(subject, inquiry)
    meaning = _meaning(shown, subject, page) or page.says("explained.no_meaning")
    if shown is None:
        return page.says("explained.term", name=subject.name, meaning=meaning)
    where = title(shown.info.framework) + (f", {shown.owner}" if shown.owner else "")
    return page.says("explained.lead", name=code(shown.info.key), where=where, meaning=meaning)


# Cards


def _card(subject: Subject, inquiry: Inquiry) -> Card | None:
    return card(subject.framework, subject.key, inquiry.algorithm, inquiry.versions) if subject.key else None


def _meaning(shown: Card | None, subject: Subject, page: OnPage) -> str:
    ours = (f"setting.{shown.setting}" if shown is not None else "", subject.concept)
    known = next((name for name in ours if name in about), None)
    if known is not None:
        return about(known, page.language)
    text = shown.help if shown is not None else ""
    if not text and shown is not None and shown.setting:
        text = f"{specs()[shown.setting].about}."
    return page.says("explained.original", text=text) if text else ""


def _card_lines(shown: Card, page: OnPage, meaning: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    info, lines, markers = shown.info, [meaning], []
    for option in page.draft.context.evidence.run.options:
        if option.key == info.key:
            markers.append(page.citations.place(option.span))
            where = place(option.span, page.language)
            lines.append(page.says("explained.yours", value=code(str(option.value)), place=f"{where} [{markers[-1]}]"))
    if info.type:
        choices = [code(str(choice)) for choice in info.choices]
        name = "explained.type_choices" if choices else "explained.type"
        lines.append(page.says(name, type=code(info.type), choices=joined_names(choices, page)))
    lines += _default_lines(shown, page)
    lines += _life_lines(shown, page)
    if shown.elsewhere:
        names = [f"{title(framework)} {code(key)}" for framework, key in shown.elsewhere[:MAX_ELSEWHERE]]
        lines.append(page.says("explained.elsewhere", names=joined_names(names, page)))
    return tuple(filter(None, lines)), tuple(markers)


def _default_lines(shown: Card, page: OnPage) -> Iterator[str]:
    framework = title(shown.info.framework)
    if shown.beyond is not None:
        yield sentence(shown.beyond, page.language)
    elif shown.now is not None and shown.version is not None:
        value = _stretch(shown.now, page)
        yield page.says("explained.default", framework=framework, version=release_text(shown.version), value=value)
        return
    if not shown.history:
        return
    newest = shown.history[-1]
    if newest.others:  # which of them counts, only the command or class tells
        value = _stretch(newest, page)
        yield page.says("explained.default", framework=framework, version=newest.last, value=value)
        return
    spans = [(value, list(group)) for value, group in groupby(shown.history, lambda stretch: stretch.value)]
    told = [
        f"{group[0].first}–{group[-1].last}{_colon(page)}{_value(value, page)}"
        for value, group in spans[-MAX_STRETCHES:]
    ]
    if len(spans) == 1:
        text = _stretch(shown.history[-1], page)
        first = shown.history[0].first
        yield page.says("explained.default_always", value=text, first=first, read=shown.read_up_to)
    else:
        spread = "；".join(told) if page.language == "zh" else "; ".join(told)
        yield page.says("explained.default_by_release", spans=spread, read=shown.read_up_to)


def _life_lines(shown: Card, page: OnPage) -> Iterator[str]:
    info, framework = shown.info, title(shown.info.framework)
    if info.last is not None:
        other = profiles()[info.framework].renamed.get(info.key) or next(
            (step.new for step in catalogue.renamed(info.framework, info.key) if step.old == info.key), ""
        )
        now = page.says("explained.renamed", name=code(other)) if other else ""
        yield page.says("explained.gone", framework=framework, last=info.last) + now
    elif shown.absent and shown.version is not None:
        yield page.says("explained.absent", framework=framework, version=shown.version.exact, first=info.first)
    elif version_key(info.first) > version_key(catalogue.versions(info.framework)[0]):
        yield page.says("explained.since", framework=framework, first=info.first)


def _stretch(stretch: Stretch, page: OnPage) -> str:
    others = [
        f"{_value(value, page)} ({', '.join(names[:2])}{' …' if len(names) > 2 else ''})"
        for value, names in list(stretch.others.items())[:MAX_OTHERS]
    ]
    text = _value(stretch.value, page)
    return text + page.says("explained.others", values=joined_names(others, page)) if others else text


def _value(value: Value, page: OnPage) -> str:
    if value == COMPUTED:
        return page.says("explained.computed")
    if value == REQUIRED:
        return page.says("explained.required")
    return code("none" if value is None else str(value).lower() if isinstance(value, bool) else str(value))


# Pages


def _pages(page: OnPage, subject: Subject, inquiry: Inquiry) -> list[Case]:
    """The published pages that name the option or its setting and fit the framework and algorithm, nearest first."""
    shown, known = _card(subject, inquiry), page.draft.knowledge
    names = {subject.key, subject.key.rpartition(".")[2], shown.setting if shown else ""} - {""}
    order = {name: number for number, name in enumerate(inquiry.near)}
    if not names:
        return [known.published[name] for name in inquiry.near if _is_about(name, subject, page)]
    causes = [
        cause
        for cause in known.published.values()
        if not names.isdisjoint(cause.settings) and _fits_run(cause, inquiry)
    ]
    return sorted(causes, key=lambda cause: (order.get(cause.id, len(order)), cause.level != "case", cause.id))


def _is_about(cause_id: str, subject: Subject, page: OnPage) -> bool:
    known = page.draft.knowledge
    return cause_id in known.published and subject.concept in known.titles.get(cause_id, ())


def _fits_run(cause: Case, inquiry: Inquiry) -> bool:
    if inquiry.framework and cause.frameworks and inquiry.framework not in cause.frameworks:
        return False
    if inquiry.algorithm and cause.algorithms and inquiry.algorithm not in cause.algorithms:
        return False
    return cause.level != "defect" or not cause.fixed  # those of old releases are for the list of known defects


def _rules(page: OnPage, subject: Subject, inquiry: Inquiry) -> list[Rule]:
    """The checks of the option or its setting, those for the algorithm alone first."""
    shown, algorithm = _card(subject, inquiry), inquiry.algorithm
    names = {subject.key, shown.setting if shown else ""} - {""}
    named = regex(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(names)))})(?![\w.])")
    rules = page.draft.knowledge.rules.for_framework(inquiry.framework or None) if names else ()
    found = [rule for rule in rules if named.search(rule.when)]
    fitting = [rule for rule in found if not algorithm or algorithm in rule.applies.get("algorithm", (algorithm,))]
    return sorted(fitting, key=lambda rule: "algorithm" not in rule.applies)


def _advised(rule: Rule, language: str) -> list[str]:
    """The sentences of a check's fixes that name a value other than 0."""
    texts = [fix.text.source.get(language) for fix in rule.fixes if fix.text is not None]
    found = [sentence for text in texts for sentence in sentences(text)]
    return [sentence for sentence in found if _VALUED.search(sentence) and "{" not in sentence]


def _with_values(text: str, subject: Subject, inquiry: Inquiry) -> list[str]:
    """The sentences of a text, outside of code, that give the option a value."""
    shown = _card(subject, inquiry)
    words = filter(None, (subject.name, subject.key, shown.setting if shown else ""))
    spelled = "|".join(map(re.escape, words))
    patterns = [regex(rf"(?<![A-Za-z0-9_.])(?:{spelled}){VALUE}", re.IGNORECASE)]
    if shown is not None and shown.setting in wordings("numbers"):
        patterns.append(re.compile(rf"(?<!_){wordings('numbers', VALUE)[shown.setting].pattern}", re.IGNORECASE))
    told, fence = [], ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        for said in () if before or fence else sentences(line.strip().lstrip("-*").strip()):
            prose = word_count(said) >= LEAST_WORDS and len(said) <= LONGEST_SENTENCE and "|" not in said
            if prose and said[-1] not in ":：" and any(pattern.search(said) for pattern in patterns):
                told.append(said)
    return told


# Two algorithms


def _own_options(framework: str, algorithm: str) -> Mapping[str, Value]:
    """The options of an algorithm's own class or command in the newest release read, with their defaults."""
    own = owners(framework, algorithm)[:1]
    found = ((key, catalogue.option(framework, key, catalogue.versions(framework)[-1])) for key in _alive(framework))
    return {
        key: info.default_by.get(own[0], info.default)
        for key, info in found
        if own and info is not None and own[0] in info.owners
    }


def _alive(framework: str) -> tuple[str, ...]:
    return catalogue.keys(framework, catalogue.versions(framework)[-1])


def _known_first(framework: str, names: Collection[str]) -> list[str]:
    """The options with a canonical setting first: these are the ones that people set."""
    return sorted(names, key=lambda name: (name not in index(framework), name))[:MAX_DIFFERING]


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _colon(page: OnPage) -> str:
    return "：" if page.language == "zh" else ": "
