"""The knowledge pages: a list by kind and framework, which can be searched, and one page of the knowledge.

Rendered by the server, so an address is enough to share a search, and a page is there before any script is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.engine.mechanism import Mechanism, Origin
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.model.case import Case
from trainmedic.kb.pages.examples import examples_of
from trainmedic.kb.pages.render import mechanism_sections
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.ui.chat import evidence
from trainmedic.ui.chat.frame import header
from trainmedic.ui.chat.markdown import fenced, page_html
from trainmedic.ui.chat.texts import LANGUAGES, Language, Words, path_of, words
from trainmedic.ui.context import AppContext
from trainmedic.ui.knowledge.catalogue import KINDS, Catalogue, Selection

HEADERS = {"Cache-Control": "no-cache", "Vary": "Cookie, Authorization"}
"""A team's pages have the addresses of everyone's."""
PATHS: Mapping[str, Language] = {path_of(language, "knowledge"): language for language in LANGUAGES}
ON_PAGE = 60
"""Entries on one page of the list."""
LONGEST_QUERY = 8_000
FIELDS = {"q": 500, "kind": 80, "package": 80, "page": 6}
"""The fields of an address and how many characters of each are read."""
PAGES = ("case", "mechanism", "rule", "defect")
LEVELS: Mapping[str, str] = {"case": "cases", "mechanism": "mechanisms", "defect": "defects"}


class KnowledgePages:
    """``address`` gives the address of one of our static files by its name."""

    def __init__(self, context: AppContext, address: Callable[[str], str]) -> None:
        self._context = context
        self._address = address
        self._catalogue: tuple[Knowledge, Catalogue] | None = None

    def response(self, path: str, query_string: str, url: str = "") -> Response:
        """The page at one of `PATHS`; ``url`` is its whole address. Blocks; to be called in a thread."""
        language = PATHS[path]
        values = dict(parse_qsl(query_string[:LONGEST_QUERY], keep_blank_values=True))
        chosen = {name: " ".join(value.split())[:most] for name, most in FIELDS.items() if (value := values.get(name))}
        if any(values.get(name) == "" for name in FIELDS):  # a form sends its empty fields too
            query = urlencode(chosen)
            return RedirectResponse(f"{path}?{query}" if query else path, status_code=303)
        knowledge = self._context.advisor.snapshot().knowledge
        page = next((name for name in PAGES if name in values), None)
        if page is not None:
            return self._page(knowledge, language, page, values[page], url)
        return self._list(knowledge, language, chosen, url)

    def _list(self, knowledge: Knowledge, language: Language, chosen: Mapping[str, str], url: str) -> Response:
        t = words(language)
        catalogue = self._catalogue_of(knowledge)
        kind = chosen.get("kind", "")
        selection = Selection(
            kind=kind if kind in KINDS else "", query=chosen.get("q", ""), package=chosen.get("package", "")
        )
        found = catalogue.selected(selection, self._near(selection) if selection.query else ())
        number = max(1, int(chosen["page"])) if chosen.get("page", "").isdecimal() else 1
        start = (number - 1) * ON_PAGE
        values = {
            "selection": selection,
            "kinds": [(name, catalogue.counts[name]) for name in KINDS],
            "packages": sorted(catalogue.packages, key=lambda name: evidence.framework_name(name).casefold()),
            "group_name": lambda name: group_name(name, t),
            "address": lambda **changes: address(language, chosen, changes),
            "entries": found[start : start + ON_PAGE],
            "count": len(found),
            "previous": number - 1,
            "next": number + 1 if start + ON_PAGE < len(found) else None,
        }
        title = " · ".join(filter(None, (heading(selection, t), "trainmedic")))
        return self._document(language, title, t["kb_description"], "knowledge/list.html", values, url)

    def _near(self, selection: Selection) -> list[str]:
        """The ids of the entries nearest in meaning to the words searched for."""
        levels = [level for level, kind in LEVELS.items() if selection.kind in ("", kind)]
        hits = [
            hit for level in levels for hit in self._context.advisor.search(selection.query, ON_PAGE, {"level": level})
        ]
        return [hit.case_id for hit in sorted(hits, key=lambda hit: (-hit.score, hit.case_id))]

    def _page(self, knowledge: Knowledge, language: Language, kind: str, identifier: str, url: str) -> Response:
        """One page of the knowledge. An answer links to its causes as cases, whatever their level."""
        case, rule = knowledge.case_pages.get(identifier), knowledge.rules.get(identifier)
        defect = knowledge.defect_of.get(identifier)
        place = knowledge.mechanisms.find(identifier)
        if kind == "rule":
            article = None if rule is None else _rule(rule, knowledge, language)
        elif case is not None:
            article = _case(case, knowledge, language)
        elif defect is not None:
            article = _defect(defect, knowledge, language)
        else:
            article = None if place is None else _mechanism(*place, knowledge, language)
        if article is None:
            title = words(language)["kb_missing"]
            return self._document(language, title, "", "missing.html", {}, url, status=404)
        title, description, values = article
        return self._document(language, f"{title} · trainmedic", description, "knowledge/article.html", values, url)

    def _document(
        self,
        language: Language,
        title: str,
        description: str,
        template: str,
        values: Mapping[str, Any],
        url: str,
        *,
        status: int = 200,
    ) -> Response:
        page = evidence.render(
            "document.html",
            language,
            title=title,
            url=url,
            description=evidence.first_sentences(description),
            css=self._address("ui.css"),
            icon=self._address("icon.svg"),
            script=self._address("ui.js"),
            header=Markup(header(self._context, language, "knowledge")),
            body=Markup(evidence.render(template, language, **values)),
        )
        return HTMLResponse(page, status_code=status, headers=HEADERS)

    def _catalogue_of(self, knowledge: Knowledge) -> Catalogue:
        kept = self._catalogue
        if kept is None or kept[0] is not knowledge:
            kept = self._catalogue = (knowledge, Catalogue(knowledge))
        return kept[1]


def address(language: Language, chosen: Mapping[str, str], changes: Mapping[str, object]) -> str:
    """The list's address with some fields changed (None: removed); its page starts again unless it is changed."""
    fields = {name: value for name, value in chosen.items() if name != "page"} | dict(changes)
    query = urlencode({name: value for name, value in fields.items() if value})
    return path_of(language, "knowledge") + (f"?{query}" if query else "")


def heading(selection: Selection, t: Words) -> str:
    """The heading of a list, in a few words."""
    package = evidence.framework_name(selection.package) if selection.package else ""
    kind = t[f"kb_{selection.kind}"] if selection.kind else ""
    return " · ".join(filter(None, (selection.query, package, kind))) or str(t["kb_title"])


def group_name(group: str, t: Words) -> str:
    """A class of failure, or the effect of a defect, as a reader knows it."""
    effect: str | None = t.get(f"effect_{group}")
    return effect or str(t["families"].get(group, group or t["kb_other"]))


Article = tuple[str, str, Mapping[str, Any]]
"""Title, description and the values of the template."""


def _article(**values: Any) -> Mapping[str, Any]:
    defaults: dict[str, Any] = {
        name: () for name in ("tags", "facts", "sections", "sources", "rules", "cases", "related")
    }
    defaults |= {"badge": "", "grade": "", "artefact": False, "origin_of": None, "no_rule": "", "ask": "", "kind": ""}
    return defaults | values


def _html(parts: Sequence[tuple[str, str]]) -> list[tuple[str, Markup]]:
    return [(title, page_html(text)) for title, text in parts if text.strip()]


def _case(case: Case, knowledge: Knowledge, language: Language) -> Article:
    t = words(language)
    parts = [(t[f"kb_{name}"], case.section(name, language)) for name in ("symptom", "cause", "fix")]
    refuted = "\n".join(
        f"- **{item.claim.get(language).rstrip('.。')}**{t['colon']}{item.why.get(language)}"
        for item in case.refutations
    )
    parts += [(t["kb_refuted"], refuted), (t["kb_confirm"], case.section("confirm", language))]
    facts = [(f"{name} {t['kb_affected']}", case.affected[name]) for name in case.affected]
    facts += [(f"{name} {t['kb_fixed']}", case.fixed[name]) for name in case.fixed]
    title = case.title.get(language)
    values = _article(
        kind="cases",
        title=title,
        id=case.id,
        tags=[*map(evidence.framework_name, case.frameworks), *(name.upper() for name in case.algorithms[:4])],
        group=group_name(case.family, t),
        grade=case.evidence,
        reviewed=case.reviewed,
        artefact=case.kind == "artefact",
        facts=facts,
        sections=_html(parts),
        sources=case.sources,
        rules=[rule for item in case.rules if (rule := knowledge.rules.get(item)) is not None],
        no_rule=case.no_rule if language == "en" else "",
        related=[knowledge.case_pages[item] for item in case.related if item in knowledge.case_pages],
        ask=title,
    )
    return title, case.section("cause", language) or title, values


def _mechanism(mechanism: Mechanism, origin: Origin | None, knowledge: Knowledge, language: Language) -> Article:
    t = words(language)
    parts = list(mechanism_sections(mechanism, language))
    if origin is not None:
        parts.insert(0, (t["kb_fix"], origin.fix.get(language)))
    title = (origin or mechanism).title.get(language)
    values = _article(
        kind="mechanisms",
        title=title,
        id=mechanism.id if origin is None else f"{mechanism.id}.{origin.id}",
        group=group_name(mechanism.family, t),
        origin_of=mechanism if origin is not None else None,
        sections=_html(parts),
        sources=mechanism.sources,
        cases=[knowledge.case_pages[item] for item in mechanism.all_cases if item in knowledge.case_pages],
    )
    return title, mechanism.section("cause", language), values


def _rule(rule: Rule, knowledge: Knowledge, language: Language) -> Article:
    t = words(language)
    note = rule.note.get(language) if rule.note is not None else ""
    parts = [(t["kb_says"], rule.message.source.get(language)), (t["kb_note"], note)]
    example = None
    with suppress(InvalidPage):
        example = next((item for item in examples_of(rule) if item.kind == "Fires"), None)
    parts.append((t["kb_condition"], fenced(rule.when) if rule.when else t["kb_module"]))
    if example is not None:
        files = [f"`{item.name}`\n\n{fenced(str(item.content).rstrip())}" for item in example.attachments]
        parts.append((t["kb_example"], "\n\n".join([example.sentence, *files])))
    title = rule.title.get(language)
    status = t["kb_preview"] if rule.status == "preview" else rule.status
    values = _article(
        kind="rules",
        title=title,
        id=rule.id,
        tags=[
            *map(evidence.framework_name, rule.applies.get("framework", ())),
            *([status] if rule.status != "stable" else ()),
        ],
        badge=rule.severity.value,
        facts=list(rule.versions.items()),
        sections=_html(parts),
        sources=rule.sources,
        cases=[knowledge.case_pages[item] for item in rule.cases if item in knowledge.case_pages],
    )
    return title, parts[0][1], values


def _defect(defect: Defect, knowledge: Knowledge, language: Language) -> Article:
    t = words(language)
    symptoms = "\n".join(f"- {line}" for line in defect.symptoms.get(language, ()))
    upgrade = t["kb_upgrade"].format(package=defect.package, version=defect.fixed) if defect.fixed else t["kb_unfixed"]
    workaround = defect.workaround.get(language) if defect.workaround is not None else ""
    parts = [
        (t["kb_symptom"], symptoms),
        (t["kb_fix"], "\n\n".join(filter(None, (upgrade, workaround)))),
        (t["kb_touches"], ", ".join(f"`{name}`" for name in defect.touches)),
        (t["kb_condition"], fenced(defect.when) if defect.when else ""),
        (t["kb_prints"], fenced(defect.message) if defect.message else ""),
    ]
    first = defect.introduced or t["kb_unknown_release"]
    title = defect.title.get(language)
    place = knowledge.mechanisms.find(defect.mechanism) if defect.mechanism else None
    cause = knowledge.published.get(defect.id)
    values = _article(
        kind="defects",
        title=title,
        id=defect.id,
        tags=[evidence.framework_name(defect.package)],
        group=group_name(defect.effect.value, t),
        facts=[(t["kb_introduced"], first), (t["kb_fixed"], defect.fixed or t["kb_unreleased"])],
        origin_of=place[0] if place is not None else None,
        sections=_html(parts),
        sources=cause.sources if cause is not None else (),
        ask=title,
    )
    return title, workaround or upgrade, values
