"""Pages' claims about options: defaults that they quote, compared with the catalogues, and options that they name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.entries import owners
from trainmedic.kb.frameworks.profiles import BASE, profiles
from trainmedic.kb.frameworks.tables import Table, table
from trainmedic.kb.pages.page import KNOWLEDGE
from trainmedic.kb.versions import permits

NEAR = 40
"""Characters between an option and what is said of its default."""
FOLDERS = ("causes", "mechanisms")
_EXAMPLES = re.compile(r"^## (?:Check|Should find|Examples)\b", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[;?!。；])\s*|(?<=[.:])\s+|\s\|\s|\n")
_VALUE = r"(?<!\w)`?\"?(?P<value>-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?|true|false|none|on|off|[a-z_]+(?=`))\"?`?"
_QUOTES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bdefaults? (?:of |is |to |value |has been )*{_VALUE}(?![\w.]*\w)",
        rf"{_VALUE} (?:tokens )?(?:by default|\((?:the|its) default\)|, (?:the|its) default)",
        rf"默认(?:值|为|是|即|的|取)*\s*{_VALUE}",
    )
)
_NAMED = re.compile(rf"\bdefault `(?P<name>[\w.-]+)` (?:is|of) {_VALUE}", re.IGNORECASE)
_FILLED = re.compile(r"\{[^{}]*\}")
_CLAUSE = re.compile(r"[，。；]|, (?:and|but|since|because)")
_NAME = re.compile(
    r"(?<![\w./])-{0,2}(?P<name>[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+|beta|gamma|temperature)(?![\w/(])"
)
_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+|\.x|\b)")
_WORDS: Mapping[str, object] = {"true": True, "on": True, "false": False, "off": False, "none": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One option with the default that a sentence gives it."""

    place: str
    sentence: str
    option: str
    value: object
    frameworks: tuple[str, ...]
    algorithms: tuple[str, ...]
    affected: Mapping[str, str]
    bound: bool
    """Whether the sentence names a release."""


def quotes() -> Iterator[Quote]:
    for folder in FOLDERS:
        for path in sorted((KNOWLEDGE / folder).rglob("*.md")):
            if path.name != "README.md":
                yield from quotes_of(path)


def quotes_of(path: Path) -> Iterator[Quote]:
    text = _EXAMPLES.split(path.read_text(encoding="utf-8"))[0]
    own = _listed(text, "frameworks?") or (path.parent.name,)
    affected = dict(re.findall(r'"?([\w-]+)"?: "([<>=!~][^"]*)"', text.partition("\n---")[0]))
    known = tuple(name for name in (*own, BASE) if name in catalogue.frameworks())
    for number, line in enumerate(text.split("\n"), start=1):
        # A note on a source, whose address names its release; a symptom in the words of users.
        if "url:" in line or line.lstrip().startswith('- "'):
            continue
        for sentence in _SENTENCE.split(_FILLED.sub("", line)):
            for option, value, rest in _pairs(sentence):
                named = tuple(name for name in known if re.search(profiles()[name].mention, sentence, re.IGNORECASE))
                place = f"{_shown_path(path)}:{number}"
                yield Quote(
                    place=place,
                    sentence=sentence.strip(),
                    option=option,
                    value=value,
                    frameworks=named or known,
                    algorithms=_listed(text, "algorithms?"),
                    affected=affected,
                    bound=_RELEASE.search(rest) is not None,
                )


def named(options: Collection[str], framework: str) -> Iterator[str]:
    """Where pages of a framework, examples apart, name one of these options, and what the line says."""
    names = "|".join(map(re.escape, sorted(options)))
    word = re.compile(rf"""(?:\boption\(\\?["']|`(?:--)?)(?:{names})(?=\\?["']|[`=:\s])""")
    for folder in FOLDERS if options else ():
        for path in sorted((KNOWLEDGE / folder).rglob("*.md")):
            text = _EXAMPLES.split(path.read_text(encoding="utf-8"))[0]
            if framework in (_listed(text, "frameworks?") or (path.parent.name,)):
                for number, line in enumerate(text.split("\n"), start=1):
                    if "url:" not in line and word.search(line):
                        yield f"{_shown_path(path)}:{number}: {line.strip()}"


def _shown_path(path: Path) -> str:
    return path.relative_to(KNOWLEDGE).as_posix() if path.is_relative_to(KNOWLEDGE) else path.name


def _listed(text: str, key: str) -> tuple[str, ...]:
    found = re.search(rf"\b{key}: \[([^\]]*)\]", text)
    return tuple(name.strip() for name in found[1].split(",")) if found else ()


def _pairs(sentence: str) -> Iterator[tuple[str, object, str]]:
    """Each quoted default with the option just before it, and what else the sentence says."""
    for match in _NAMED.finditer(sentence):
        yield match["name"], _read(match["value"]), sentence[: match.start("value")] + sentence[match.end("value") :]
    for pattern in _QUOTES:
        for match in pattern.finditer(sentence):
            gaps = ((name, sentence[name.end() : match.start()]) for name in _NAME.finditer(sentence[: match.start()]))
            near = [name for name, gap in gaps if len(gap) <= NEAR and not _CLAUSE.search(gap)]
            if near:
                rest = sentence[: match.start("value")] + sentence[match.end("value") :]
                yield near[-1]["name"], _read(match["value"]), rest


def _read(text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return text
    return int(number) if number.is_integer() and "." not in text and "e" not in text else number


def history(quote: Quote, tables: Mapping[str, Table]) -> Mapping[str, frozenset[str]]:
    """The defaults that an option has at each release read, for the page's algorithms if they have a command or class
    of their own; empty if none has the option."""
    for framework in quote.frameworks:
        known = tables.get(framework) or table(framework)
        assert known is not None
        own = frozenset(owner for word in quote.algorithms for owner in owners(framework, word))
        if found := _defaults(quote, known, own) or _defaults(quote, known, frozenset()):
            return found
    return {}


def _defaults(quote: Quote, known: Table, own: frozenset[str]) -> dict[str, frozenset[str]]:
    affected = "" if quote.bound else quote.affected.get(profiles()[known.framework].package, "")
    found: dict[str, frozenset[str]] = {}
    for key in _keys(known, quote.option):
        for release in known.versions:
            info = known.info(key, release)
            if info is None or not permits(affected, release):
                continue
            holders = own.intersection(known.owner_sets[info["in"]]) if own else known.owner_sets[info["in"]]
            values = {_shown(info.get("default_by", {}).get(owner, info.get("default"))) for owner in holders}
            if values:
                found[release] = found.get(release, frozenset()) | values
    return found


def _keys(known: Table, option: str) -> list[str]:
    name = option.replace("-", "_")
    return [key for key in known.names if f".{key.replace('-', '_')}".endswith(f".{name}")]


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{float(value):g}"
    return str(value).lower()


def faults(quoted: Iterable[Quote], tables: Mapping[str, Table] | None = None) -> Iterator[str]:
    """Quotes that name no release and are not the default of every release read; those that are that of none.

    ``tables`` replace the catalogues of some frameworks.
    """
    for quote in quoted:
        if quote.value in catalogue.option_names():
            continue  # it follows another option
        releases = history(quote, tables or {})
        holds = [release for release, values in releases.items() if _shown(quote.value) in values]
        computed = any("$expr" in value or "<required>" in value for values in releases.values() for value in values)
        if not releases or computed or len(holds) == len(releases):
            continue
        if not holds:
            yield f"{quote.place}: {quote.option} is {quote.value} in no release: {quote.sentence}"
        elif not quote.bound:
            yield f"{quote.place}: {quote.option} is {quote.value} in {holds[0]} to {holds[-1]}: {quote.sentence}"
