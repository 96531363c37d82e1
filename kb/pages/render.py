"""Cases, mechanisms and rules as Markdown in one language, as documentation, search results and channels show them."""

from __future__ import annotations

from collections.abc import Iterable

from trainmedic.kb.engine.mechanism import Mechanism, MechanismSet, Observation, Origin
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Reference
from trainmedic.kb.pages.examples import examples_of

messages = load_messages("trainmedic.kb.pages")


def render_rule(rule: Rule, language: str = "en") -> str:
    """A check as a page, English for any language but ``zh``. Raises `PageError` if its chapter breaks the format."""
    language = "zh" if language == "zh" else "en"
    parts = [f"# {rule.title.get(language)}", f"`{rule.id}` · {rule.severity.value} · {rule.status}"]
    parts.append(rule.message.source.get(language))
    parts += [] if rule.note is None else [rule.note.get(language)]
    parts += [_heading("when", language), f"```\n{rule.when or messages('module', language)}\n```"]
    example = next((example for example in examples_of(rule) if example.kind == "Fires"), None)
    if example is not None:
        parts += [_heading("fires", language), example.sentence]
        for attachment in example.attachments:
            parts += [f"`{attachment.name}`", f"```\n{str(attachment.content).rstrip()}\n```"]
    parts += [_heading("cases", language), "\n".join(f"- {case}" for case in rule.cases)]
    sources = [f"- <{source.url}> ({source.says}) {source.note}".rstrip() for source in rule.sources]
    parts += [_heading("sources", language), "\n".join(sources)]
    return "\n\n".join(parts) + "\n"


def render_case(case: Case, language: str = "en") -> str:
    """The whole case, English for any language but ``zh``."""
    language = "zh" if language == "zh" else "en"
    parts = [f"# {case.title.get(language)}"]
    if case.kind == "artefact":
        parts.append(f"*{messages('artefact', language)}*")
    parts.extend(_versions(case, language))
    for name in ("symptom", "cause", "fix"):
        parts += [_heading(name, language), text] if (text := case.section(name, language)) else []
    if case.refutations:
        refutations = [f"- **{item.claim.get(language)}** {item.why.get(language)}" for item in case.refutations]
        parts += [_heading("refutations", language), "\n".join(refutations)]
    parts += [_heading("confirm", language), text] if (text := case.section("confirm", language)) else []
    if case.ask:
        questions = [f"- {item.ask.get(language)} ({item.why.get(language)})" for item in case.ask]
        parts += [_heading("ask", language), "\n".join(questions)]
    parts += [_heading("sources", language), "\n".join(_reference(item, language) for item in case.sources)]
    parts.append("  \n".join(_footer(case, language)))
    return "\n\n".join(parts) + "\n"


def render_cause(cause: Case, mechanisms: MechanismSet, language: str = "en") -> str:
    """The page of a cause of any level: a case's own, or that of its mechanism."""
    place = mechanisms.find(cause.id) if cause.level != "case" else None
    return render_case(cause, language) if place is None else render_mechanism(*place, language)


def render_mechanism(mechanism: Mechanism, origin: Origin | None = None, language: str = "en") -> str:
    """A mechanism's page; with ``origin``, its page, which begins with that origin."""
    language = "zh" if language == "zh" else "en"
    parts = [f"# {(mechanism if origin is None else origin).title.get(language)}"]
    if origin is not None:
        colon = messages("colon", language)
        parts.append(_of_origin(origin, language))
        parts.append(f"**{messages('origin_of', language)}{colon}{mechanism.title.get(language)}** (`{mechanism.id}`)")
    for heading, text in mechanism_sections(mechanism, language):
        parts += [f"## {heading}", text]
    parts += [_heading("sources", language), "\n".join(_reference(item, language) for item in mechanism.sources)]
    return "\n\n".join(parts) + "\n"


def mechanism_sections(mechanism: Mechanism, language: str) -> tuple[tuple[str, str], ...]:
    """Headings with their Markdown: what happens, origins, what speaks for and against it, how to confirm, cases."""
    sections = [("happens", mechanism.section("cause", language))]
    sections.append(("origins", "\n".join(f"- {_origin(origin, language)}" for origin in mechanism.origins)))
    for name in ("explains", "against", "excludes"):
        observations: tuple[Observation, ...] = getattr(mechanism, name)
        lines = [f"- {item.says.get(language)} (`{' '.join(item.text.split())}`)" for item in observations]
        sections.append((name, "\n".join(lines)))
    sections.append(("confirm", mechanism.section("confirm", language)))
    sections.append(("cases", "\n".join(f"- `{case_id}`" for case_id in mechanism.all_cases)))
    return tuple((messages(label, language), text) for label, text in sections if text)


def _origin(origin: Origin, language: str) -> str:
    stop = "。" if language == "zh" else ". "
    return f"**{origin.title.get(language)}** ({messages(origin.common, language)}){stop}{_of_origin(origin, language)}"


def _of_origin(origin: Origin, language: str) -> str:
    """Condition, change, cases and rules of an origin."""
    colon, stop = messages("colon", language), "。" if language == "zh" else ". "
    parts = []
    if origin.text:
        parts.append(f"{messages('when', language)}{colon}`{' '.join(origin.text.split())}`")
    parts.append(f"{messages('change', language)}{colon}{origin.fix.get(language).rstrip('.。')}")
    for label, ids in (("cases", origin.cases), ("detected", origin.rules)):
        if ids:
            parts.append(f"{messages(label, language)}{colon}{_code(ids)}")
    return stop.join(parts) + stop.strip()


def _heading(label: str, language: str) -> str:
    return f"## {messages(label, language)}"


def _versions(case: Case, language: str) -> list[str]:
    lines = []
    for name in dict.fromkeys((*case.affected, *case.fixed)):
        ranges = [
            f"{messages(label, language)} `{versions[name]}`"
            for label, versions in (("affected", case.affected), ("fixed", case.fixed))
            if name in versions
        ]
        lines.append(f"- `{name}`{messages('colon', language)}{'; '.join(ranges)}")
    return [f"**{messages('versions', language)}**", "\n".join(lines)] if lines else []


def _reference(item: Reference, language: str) -> str:
    says = _named("says", item.says, language)
    return f"- <{item.url}> ({says})" + (f": {item.note}" if item.note else "")


def _footer(case: Case, language: str) -> list[str]:
    def line(label: str, text: str) -> str:
        return f"{messages(label, language)}{messages('colon', language)}{text}"

    grade = _named("grade", case.evidence, language)
    reader = messages("second_reader", language) if case.reviewed_by == "second reader" else ""
    reviewed = f" {messages('reviewed', language)} {case.reviewed}{reader}." if case.reviewed else ""
    lines = [line("evidence", f"{grade}.{reviewed}")]
    if case.rules:
        lines.append(line("detected", _code(case.rules)))
    elif case.no_rule:
        # The reason is kept in English only.
        lines.append(messages("undetected", language) if language == "zh" else line("undetected", case.no_rule))
    if case.related:
        lines.append(line("related", _code(case.related)))
    return lines


def _code(ids: Iterable[str]) -> str:
    return ", ".join(f"`{page_id}`" for page_id in ids)


def _named(group: str, value: str, language: str) -> str:
    name = f"{group}.{value}"
    return messages(name, language) if name in messages else value
