"""The fields of a draft: what the parser, the glossary and the catalogues read in a write-up, and the sentences that
state symptom, cause and fix. Every value has the passage that it was read from. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from trainmedic.ingest.drafts.draft import FIELDS, Draft, DraftField, FieldName, Passage
from trainmedic.ingest.drafts.statements import Statement
from trainmedic.ingest.threads.summary import CAUSE_WORDS, RESOLVED_WORDS
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.settings import index, specs
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Recognised

MOST_SENTENCES = {"symptom": 4, "cause": 5, "fix": 6, "no_help": 6}
LONGEST_ERROR = 200
"""Code points of an error message that is searched for."""
NARRATED: tuple[FieldName, ...] = ("symptom", "cause", "fix", "no_help")
"""The fields that are sentences, which a model may choose."""
Choose = Callable[[Sequence[str]], Iterable[tuple[str, str]]]
"""What a model makes of the lines of a write-up: (field, literal quote)."""
_NAME = regex(r"(?:--)?[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+|--[a-z]\w+")
_VALUE = regex(
    r"[`\"'”]?\s*(?:采用)?(?:默认值|参数|选项|大小|步数|数)?\s*"
    r"(?:设[置为成]*|改[为成]|=|:|：|为|是|(?:is )?set to|default(?:s to)?|to|of)?\s*[`\"'“]?"
    r"(?P<value>[0-9][0-9.]*(?:e-?[0-9]+)?|[A-Z]{2,}_[A-Z_]+|true|false|auto|half|bf(?:loat)?16|fp16|float(?:16|32))"
    r"(?![A-Za-z0-9_%])"
)


def fields_of(draft: Draft, evidence: Evidence, said: Sequence[Statement]) -> tuple[DraftField, ...]:
    """All fields in the order of `FIELDS`. ``evidence`` is that of the draft's lines, ``said`` its statements."""
    found = [
        *_run(evidence),
        *_versions(evidence),
        *_settings(evidence, said),
        *_signals(evidence),
        *_errors(evidence),
        *_narrated(evidence, said),
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda field: FIELDS.index(field.name)))


def with_choices(
    draft: Draft, fields: Sequence[DraftField], chosen: Iterable[tuple[str, str]]
) -> tuple[DraftField, ...]:
    """The fields with those that a model quoted in place of the program's choice of the same sentences.

    A quote that is not literally in the write-up is dropped, and so is a field that is no sentence.
    """
    quoted = []
    for name, quote in chosen:
        passage = find_passage(draft.lines, quote)
        narrated = next((field for field in NARRATED if field == name), None)
        if passage is not None and narrated is not None:
            quoted.append(DraftField(name=narrated, value=passage.text, passages=(passage,), by="model"))
    named = {field.name for field in quoted}
    kept = [field for field in fields if field.name not in named]
    return tuple(sorted(dict.fromkeys((*kept, *quoted)), key=lambda field: FIELDS.index(field.name)))


def find_passage(lines: Sequence[str], quote: str) -> Passage | None:
    """Where a quote is in the lines, whatever its blanks; None if it is not there or is too short to say anything."""
    wanted = "".join(quote.split())
    if len(wanted) < 6:
        return None
    owners = [number for number, line in enumerate(lines, 1) for _ in "".join(line.split())]
    at = "".join("".join(line.split()) for line in lines).find(wanted)
    if at < 0:
        return None
    first, last = owners[at], owners[at + len(wanted) - 1]
    return Passage(first_line=first, last_line=last, text=" ".join(quote.split()))


def passage_of(span: Span) -> Passage:
    return Passage(first_line=span.line, last_line=span.end_line, text=span.text)


def _run(evidence: Evidence) -> Iterator[DraftField]:
    run = evidence.run
    facts: dict[FieldName, Recognised | None] = {
        "framework": run.framework,
        "algorithm": run.algorithm,
        "model_family": run.model_family,
        "model": run.model,
    }
    for name, fact in facts.items():
        if fact is not None and fact.span is not None and not fact.span.default:
            yield DraftField(name=name, value=fact.value, passages=(passage_of(fact.span),))


def _versions(evidence: Evidence) -> Iterator[DraftField]:
    for package, fact in evidence.versions.items():
        if fact.exact is not None and fact.span is not None:
            yield DraftField(name="version", value=f"{package} {fact.exact}", passages=(passage_of(fact.span),))


def _signals(evidence: Evidence) -> Iterator[DraftField]:
    places: dict[str, dict[Passage, None]] = {}
    for signal in evidence.signals:
        places.setdefault(signal.kind, {})[passage_of(signal.span)] = None
    for kind, passages in sorted(places.items()):
        yield DraftField(name="signal", value=kind, passages=tuple(passages))


def _errors(evidence: Evidence) -> Iterator[DraftField]:
    """The exceptions that began the failures, as users paste them."""
    for trace in evidence.tracebacks:
        message = next(iter(trace.message.strip().splitlines()), "")
        if trace.root and message:
            passage = Passage(first_line=trace.span.line, last_line=trace.span.end_line, text=message)
            yield DraftField(name="error", value=f"{trace.exception}: {message}"[:LONGEST_ERROR], passages=(passage,))


def _settings(evidence: Evidence, said: Sequence[Statement]) -> Iterator[DraftField]:
    """Settings of configurations and commands, then those that sentences name, with the value if one follows."""
    framework = evidence.run.framework.value if evidence.run.framework else ""
    values: dict[str, tuple[str, list[Passage]]] = {}
    for name, setting in sorted(evidence.run.settings.items()):
        span = setting.option.span if setting.option is not None else setting.span
        if span is not None and not span.default:
            values[name] = (_written(setting.value), [passage_of(span)])
    for statement in said:
        if statement.kind == "code":
            continue
        for name, value in _named(statement.text, framework):
            before = values.get(name)
            if before is None or (not before[0] and value):
                values[name] = (value, [statement.passage])
    for name, (value, passages) in values.items():
        yield DraftField(name="setting", value=f"{name} = {value}" if value else name, passages=tuple(passages))


def _named(sentence: str, framework: str) -> Iterator[tuple[str, str]]:
    """(setting or option, its value or "") that a sentence names."""
    names = [name for name in _NAME.finditer(sentence) if catalogue.is_option(name[0])]
    for name in names:
        option = name[0].lstrip("-").replace("-", "_")
        yield _canonical(framework).get(option, option), _value_after(sentence, name.end())
    glossary = load_glossary()
    for match in glossary.find(sentence):
        if any(name.start() < match.end and match.start < name.end() for name in names):
            continue
        for setting in glossary.concepts[match.concept].settings[:1]:
            value = _value_after(sentence, match.end)
            # Three numbers are the version of a package that is called like the setting.
            if value and value.count(".") < 2 and setting in specs():
                yield setting, value


def _value_after(sentence: str, end: int) -> str:
    match = _VALUE.match(sentence, end)
    return match["value"].rstrip(".") if match is not None else ""


@cache
def _canonical(framework: str) -> Mapping[str, str]:
    return {key: rows[0][0].name for key, rows in index(framework).items() if rows} if framework else {}


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _narrated(evidence: Evidence, said: Sequence[Statement]) -> Iterator[DraftField]:
    failed = {passage_of(remedy.span).first_line: remedy for remedy in evidence.remedies if remedy.helped is False}
    seen = {signal.span.line for signal in evidence.signals}
    prose = [statement for statement in said if statement.kind != "code"]
    chosen: dict[FieldName, list[Statement]] = {name: [] for name in NARRATED}
    for statement in prose:
        line, text = statement.passage.first_line, statement.text.casefold()
        remedy = failed.get(line)
        if statement.section == "no_help" or (remedy is not None and remedy.text.strip() in statement.text):
            chosen["no_help"].append(statement)
        elif statement.section == "symptom" and (line in seen or not chosen["symptom"]):
            chosen["symptom"].append(statement)
        elif statement.section == "cause" or (
            statement.section == "confirm" and any(word in text for word in CAUSE_WORDS)
        ):
            chosen["cause"].append(statement)
        elif statement.section == "fix":
            chosen["fix"].append(statement)
    if not chosen["fix"]:
        chosen["fix"] = [s for s in prose if any(word in s.text.casefold() for word in RESOLVED_WORDS)]
    for name, listed in chosen.items():
        words = {"cause": CAUSE_WORDS, "fix": RESOLVED_WORDS}.get(name, ())
        # A sentence with a cue or an option's name says more than the others; among equals the earlier one.
        best = sorted(listed, key=lambda s: (-_weight(s.text, words), s.passage.first_line))[: MOST_SENTENCES[name]]
        for statement in sorted(best, key=lambda s: s.passage.first_line):
            yield DraftField(name=name, value=statement.text, passages=(statement.passage,))


def _weight(text: str, words: Sequence[str]) -> int:
    folded = text.casefold()
    option = any(catalogue.is_option(name[0]) for name in _NAME.finditer(text))
    return 2 * any(word in folded for word in words) + option
