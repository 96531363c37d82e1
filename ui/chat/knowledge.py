"""The knowledge page: search, filters, and one case, mechanism or rule as an article. Widgets and events only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from trainmedic.kb.engine.mechanism import Mechanism, Origin
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.model.case import Case
from trainmedic.kb.pages.body import SECTIONS, read_body
from trainmedic.kb.pages.render import mechanism_sections
from trainmedic.ui.chat import evidence, markdown
from trainmedic.ui.chat.frame import QUIET, header, html_options
from trainmedic.ui.chat.texts import Language, words
from trainmedic.ui.context import AppContext

FOUND = 40
"""Cases listed for a search."""
ALL = "all"
MAX_QUERY = 500


class KnowledgePage:
    """The knowledge page in one language."""

    def __init__(self, context: AppContext, language: Language) -> None:
        self._context = context
        self._language = language
        self._words = words(language)
        self._advisor = context.advisor.snapshot()
        knowledge = self._advisor.knowledge
        self._cases = dict(sorted(knowledge.case_pages.items()))
        self._rules = {rule.id: rule for rule in knowledge.rules.rules}
        self._mechanisms = knowledge.mechanisms

    def _of_today(self) -> KnowledgePage:
        """This page over the knowledge of now, for the length of one call."""
        renewed = self._context.advisor.knowledge is not self._advisor.knowledge
        return KnowledgePage(self._context, self._language) if renewed else self

    def build(self) -> gr.Blocks:
        t = self._words
        with gr.Blocks(title=t["knowledge_page_title"], fill_width=True, analytics_enabled=False) as page:
            gr.HTML(header(self._context, self._language, "knowledge"), elem_id="tm-head", **html_options())
            with gr.Column(elem_id="tm-kb"):
                head = gr.HTML("", elem_id="tm-kb-head", **html_options())
                body = gr.Markdown(
                    "", elem_id="tm-kb-body", sanitize_html=True, latex_delimiters=[], visible=False, container=False
                )
                foot = gr.HTML("", elem_id="tm-kb-foot", **html_options())
                with gr.Column(elem_id="tm-kb-browse") as browse:
                    gr.HTML(self._intro(), elem_id="tm-kb-intro", **html_options())
                    inputs = self._filters()
                    results = gr.HTML(self.listed("", ALL, ALL, "cases"), elem_id="tm-kb-list", **html_options())
            for widget in inputs:
                widget.change(self.listed, inputs, [results], trigger_mode="always_last", **QUIET)
            page.load(self.opened, [], [head, body, foot, browse], **QUIET)
        page.queue(default_concurrency_limit=None, api_open=False)
        return page

    def _intro(self) -> str:
        return evidence.render(
            "intro.html",
            self._language,
            cases=len(self._cases),
            rules=len(self._rules),
            mechanisms=len(self._mechanisms.mechanisms),
        )

    def _filters(self) -> list[Any]:
        t = self._words
        frameworks = sorted({name for case in self._cases.values() for name in case.frameworks})
        families = {case.family for case in self._cases.values()}
        families |= {mechanism.family for mechanism in self._mechanisms.mechanisms}
        with gr.Row(elem_id="tm-kb-filters"):
            query = gr.Textbox(
                label=t["kb_search_label"],
                placeholder=t["kb_search"],
                show_label=False,
                container=False,
                max_length=MAX_QUERY,
                max_lines=1,
                elem_id="tm-kb-query",
                scale=4,
            )
            kind = gr.Dropdown(
                [(t["kb_cases"], "cases"), (t["kb_mechanisms"], "mechanisms"), (t["kb_rules"], "rules")],
                value="cases",
                label=t["kb_kind"],
                filterable=False,
                show_label=False,
                container=False,
                elem_id="tm-kb-kind",
                min_width=110,
            )
            framework = gr.Dropdown(
                [
                    (t["kb_all_frameworks"], ALL),
                    *((evidence.framework_name(name), name) for name in frameworks),
                ],
                value=ALL,
                label=t["kb_framework"],
                show_label=False,
                container=False,
                elem_id="tm-kb-framework",
                min_width=150,
            )
            family = gr.Dropdown(
                [(t["kb_all_classes"], ALL), *sorted((t["families"].get(name, name), name) for name in families)],
                value=ALL,
                label=t["kb_class"],
                show_label=False,
                container=False,
                elem_id="tm-kb-family",
                min_width=150,
            )
        return [query, framework, family, kind]

    def listed(self, query: str, framework: str, family: str, kind: str) -> str:
        """The matching pages as HTML. Cases are searched by meaning, rules by words."""
        return self._of_today()._listed(query, framework, family, kind)

    def _listed(self, query: str, framework: str, family: str, kind: str) -> str:
        query = (query or "").strip()[:MAX_QUERY]
        if kind == "rules":
            return self._list_rules(query, framework, family)
        if kind == "mechanisms":
            return self._list_mechanisms(query, family)
        cases = self._found(query) if query else list(self._cases.values())
        rows = [
            case for case in cases if framework in (ALL, None, *case.frameworks) and family in (ALL, None, case.family)
        ]
        return evidence.render("list.html", self._language, cases=rows, ranked=bool(query))

    def _found(self, query: str) -> list[Case]:
        """Cases that contain all the words, then the nearest by meaning."""
        query_words = query.casefold().split()
        literal = [case for case in self._cases.values() if contains(haystack(case), query_words)]
        near = [self._cases[hit.case_id] for hit in self._advisor.search(query, FOUND)]
        ranks = {case.id: rank for rank, case in enumerate(near)}
        # Among the literal matches the nearest by meaning come first.
        literal.sort(key=lambda case: ranks.get(case.id, FOUND))
        return [*literal, *(case for case in near if case not in literal)][:FOUND]

    def _list_rules(self, query: str, framework: str, family: str) -> str:
        query_words = query.casefold().split()
        families = {case.id: case.family for case in self._cases.values()}
        rows = []
        for rule in self._rules.values():
            text = f"{rule.id} {rule.title.en} {rule.title.zh} {rule.when}".casefold()
            named = rule.applies.get("framework", ())
            if (
                contains(text, query_words)
                and (framework in (ALL, None) or framework in named or not named)
                and (family in (ALL, None) or family in {families.get(case_id) for case_id in rule.cases})
            ):
                rows.append(rule)
        return evidence.render("list.html", self._language, rules=rows)

    def _list_mechanisms(self, query: str, family: str) -> str:
        query_words = query.casefold().split()
        rows = [
            mechanism
            for mechanism in self._mechanisms.mechanisms
            if family in (ALL, None, mechanism.family) and contains(mechanism_haystack(mechanism), query_words)
        ]
        return evidence.render("list.html", self._language, mechanisms=rows)

    def opened(self, request: gr.Request) -> tuple[Any, Any, Any, Any]:
        """The case, mechanism or rule in the address as an article instead of the list.

        An answer links to its causes as cases, whatever their level.
        """
        return self._of_today()._opened(request.query_params)

    def _opened(self, query: Mapping[str, str]) -> tuple[Any, Any, Any, Any]:
        case, rule = self._cases.get(query.get("case", "")), self._rules.get(query.get("rule", ""))
        place = self._mechanisms.find(query.get("mechanism", query.get("case", "")))
        if case is not None:
            head, body, foot = self._case(case)
        elif rule is not None:
            head, body, foot = self._rule(rule)
        elif place is not None:
            head, body, foot = self._mechanism(*place)
        elif query.keys() & {"case", "mechanism", "rule"}:
            head, body, foot = evidence.render("missing.html", self._language), "", ""
        else:
            return gr.skip(), gr.skip(), gr.skip(), gr.skip()
        return head, gr.Markdown(value=body, visible=bool(body)), foot, gr.Column(visible=False)

    def _case(self, case: Case) -> tuple[str, str, str]:
        t, language = self._words, self._language
        parts = [(t[f"kb_{name}"], case.section(name, language)) for name in ("symptom", "cause", "fix")]
        refuted = "\n".join(
            f"- **{item.claim.get(language).rstrip('.。')}**{t['colon']}{item.why.get(language)}"
            for item in case.refutations
        )
        parts += [(t["kb_refuted"], refuted), (t["kb_confirm"], case.section("confirm", language))]
        related = [self._cases[item] for item in case.related if item in self._cases]
        rules = [self._rules[item] for item in case.rules if item in self._rules]
        head = evidence.render("case_head.html", language, case=case)
        foot = evidence.render("case_foot.html", language, case=case, rules=rules, related=related)
        return head, article(parts), foot

    def _mechanism(self, mechanism: Mechanism, origin: Origin | None) -> tuple[str, str, str]:
        language = self._language
        parts = list(mechanism_sections(mechanism, language))
        if origin is not None:
            parts.insert(0, (self._words["kb_fix"], origin.fix.get(language)))
        cases = [self._cases[item] for item in mechanism.all_cases if item in self._cases]
        head = evidence.render("mechanism_head.html", language, mechanism=mechanism, origin=origin)
        foot = evidence.render("rule_foot.html", language, rule=mechanism, cases=cases)
        return head, article(parts), foot

    def _rule(self, rule: Rule) -> tuple[str, str, str]:
        t, language = self._words, self._language
        parts = []
        example = None
        try:
            body = read_body(rule)
        except InvalidPage:
            body = None
        if body is not None:
            names = zip(SECTIONS[language], ("kb_finds", "kb_why", "kb_do"), strict=True)
            parts = [(t[key], body.sections.get(language, {}).get(heading, "")) for heading, key in names]
            example = next((item for item in body.examples if item.kind == "Fires"), None)
        parts.append((t["kb_condition"], markdown.fenced(rule.when) if rule.when else t["kb_module"]))
        if example is not None:
            files = [f"`{item.name}`\n\n{markdown.fenced(str(item.content).rstrip())}" for item in example.attachments]
            parts.append((t["kb_example"], "\n\n".join([example.sentence, *files])))
        cases = [self._cases[item] for item in rule.cases if item in self._cases]
        head = evidence.render("rule_head.html", language, rule=rule)
        foot = evidence.render("rule_foot.html", language, rule=rule, cases=cases)
        return head, article(parts), foot


def article(parts: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(f"### {title}\n\n{markdown.safe(text, frozenset())}" for title, text in parts if text.strip())


def contains(text: str, query_words: Sequence[str]) -> bool:
    return all(word in text for word in query_words)


def haystack(case: Case) -> str:
    """The text of a case for the search by words."""
    symptoms = " ".join(text for texts in case.symptoms.values() for text in texts)
    return f"{case.id} {case.title.en} {case.title.zh} {' '.join(case.frameworks)} {symptoms}".casefold()


def mechanism_haystack(mechanism: Mechanism) -> str:
    """The text of a mechanism for the search by words."""
    symptoms = " ".join(text for texts in mechanism.symptoms.values() for text in texts)
    origins = " ".join(f"{origin.title.en} {origin.title.zh}" for origin in mechanism.origins)
    return f"{mechanism.id} {mechanism.title.en} {mechanism.title.zh} {origins} {symptoms}".casefold()
