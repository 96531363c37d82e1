"""The composition root: settings in, a wired advisor and application out. The only place where everything meets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING

from kb.cases.page import CaseSet, load_cases
from kb.glossary.terms import Glossary, load_glossary
from kb.rules.page import load_rules
from kb.store.embedder import OnnxEmbedder, make_embedder
from kb.store.index import ensure
from service.advisor import Advisor, Knowledge
from service.history import History
from service.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from service.model import ChatModel


def load_knowledge(settings: Settings) -> Knowledge:
    """Load pages, glossary and index. The index is built where it is absent or older than the pages."""
    embedder = make_embedder(
        settings.embedder,
        base_url=settings.embedder_base_url,
        api_key=settings.embedder_api_key.get_secret_value(),
    )
    if isinstance(embedder, OnnxEmbedder):
        Thread(target=embedder.load).start()  # a fifth of a second, most of it outside of Python: beside the pages
    cases = load_cases(settings.extra_pages)
    rules = load_rules(settings.extra_pages)
    glossary = load_glossary()
    index = ensure(settings.data_dir / "index", cases, rules, glossary, embedder)
    return Knowledge(
        cases=cases,
        rules=rules,
        glossary=glossary,
        index=index,
        embedder=embedder,
        concepts=concepts_of(cases, glossary),
        titles=titles_of(cases, glossary),
    )


def concepts_of(cases: CaseSet, glossary: Glossary) -> Mapping[str, frozenset[str]]:
    """The glossary concepts that each published case speaks of: in its title, symptoms and cause, both languages."""
    found = {}
    for case in cases.cases:
        if case.status != "published":
            continue
        texts = [case.title.en, case.title.zh, *(s for group in case.symptoms.values() for s in group)]
        texts += [case.section("symptom", "en"), case.section("symptom", "zh"), case.section("cause", "en")]
        texts += [text for r in case.refutations for text in (r.claim.en, r.claim.zh)]
        found[case.id] = frozenset(match.concept for match in glossary.find("\n".join(texts)))
    return MappingProxyType(found)


def titles_of(cases: CaseSet, glossary: Glossary) -> Mapping[str, frozenset[str]]:
    """The glossary concepts of each published case's title, both languages."""
    return MappingProxyType(
        {case.id: frozenset(glossary.ids(f"{case.title.en}\n{case.title.zh}")) for case in cases.published}
    )


def build_advisor(settings: Settings, *, with_history: bool = True) -> Advisor:
    """An advisor over the knowledge that the settings name."""
    knowledge = load_knowledge(settings)
    history = None
    if with_history and settings.history_days > 0:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        history = History(settings.history_url)
        history.forget(timedelta(days=settings.history_days))
    return Advisor(knowledge, history)


def build_app(settings: Settings) -> FastAPI:
    """The web application: the API over one advisor."""
    from kb.frameworks.canonical import warm
    from service.api.app import create_app

    advisor = build_advisor(settings)
    assistant, probes = None, {}
    if settings.model_base_url:
        from service.assistant import Assistant

        model = build_model(settings)
        assistant = Assistant(advisor, model, restate=settings.model_restate)
        probes["model"] = model.probe
    # Tables and model are read on first use; the first question must not wait for them.
    warm()
    advisor.search("loss is nan", top_k=1)
    return create_app(advisor, settings, probes, assistant)


def build_model(settings: Settings) -> ChatModel:
    """The model that the settings name. Nothing is asked of it yet."""
    from service.model import ChatModel, ModelOptions

    return ChatModel(
        ModelOptions(
            base_url=settings.model_base_url,
            name=settings.model_name,
            api_key=settings.model_api_key.get_secret_value(),
            context_tokens=settings.model_context_tokens,
            max_tokens=settings.model_max_tokens,
            temperature=settings.model_temperature,
            timeout_s=settings.model_timeout_s,
            first_token_s=settings.model_first_token_s,
            concurrency=settings.model_concurrency,
        )
    )
