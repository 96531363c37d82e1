"""The page of a cause from the answers to five questions: one language, one check, examples made from what was pasted.

Pure except for reading what the author pasted, by the reader that checks are run on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files

from packaging.version import Version

from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.language import language_of
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment, Span
from trainmedic.kb.model.run import Option
from trainmedic.kb.pages.case import HEADINGS
from trainmedic.kb.pages.examples import CLOSE, OPEN
from trainmedic.kb.versions import parse_version, version_key

MARKS = ("[[", "]]")
"""The marks that an author puts around the options that matter."""
LISTING = "pip.txt"
LONGEST_ID = 8
"""Words of the title that become the id."""
_BLOCKS = {
    "command": "bash train.sh",
    "yaml": "yaml config.yaml",
    "json": "json config.json",
    "python": "python train.py",
}
_KINDS = {
    "nan": ("nan-loss", ""),
    "oom": ("oom", "memory"),
    "hang": ("communication", "hang"),
    "diverge": ("divergence", ""),
    "slow": ("throughput", "slow"),
}
"""Part of a signal's name → family and effect of a cause that shows it."""
_FILLING = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "after", "before", "by", "for", "from", "in", "is", "it", "its", "not"),
        *("of", "on", "or", "the", "to", "when", "while", "with"),
    )
)
_WORDS = {
    "en": ("Upgrade to {package} {fixed} or newer.", "The same run with {package} {fixed} does not show it."),
    "zh": ("升级到 {package} {fixed} 或更新版本。", "换成 {package} {fixed} 再跑同一个任务，问题不再出现。"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """``introduced`` is the first release with it, ``fixed`` the first without; empty where unknown. ``run`` is a
    command or a configuration, what matters in it between `MARKS`."""

    seen: str
    package: str
    introduced: str
    fixed: str
    run: str
    why: str
    helps: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    id: str
    framework: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pasted:
    """What the author pasted, as it is read: ``info`` names its block, ``options`` are the marked ones in order."""

    info: str
    text: str
    evidence: Evidence
    options: tuple[Option, ...]

    @property
    def name(self) -> str:
        return self.info.split()[1]

    def marked(self) -> str:
        """The block with its options ⟦marked⟧."""
        lines = self.text.split("\n")
        for option in reversed(self.options):
            span = option.span
            for line, column, mark in ((span.end_line, span.end_column, CLOSE), (span.line, span.column, OPEN)):
                lines[line - 1] = lines[line - 1][: column - 1] + mark + lines[line - 1][column - 1 :]
        return self._block(lines)

    def without(self, option: Option | None = None) -> tuple[str, str]:
        """The text and its block without an option, and without its line where nothing else is on it."""
        lines = self.text.split("\n")
        if option is not None:
            first, last = option.span.line - 1, option.span.end_line - 1
            before, after = lines[first][: option.span.column - 1].rstrip(), lines[last][option.span.end_column - 1 :]
            rest = before + after[1:].lstrip(" ") if after.startswith(",") else before + after
            lines[first : last + 1] = [rest] if rest.strip(" \\") else []
        return "\n".join(lines), self._block(lines)

    def _block(self, lines: Sequence[str]) -> str:
        return "\n".join((f"```{self.info}", *lines, "```"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCheck:
    """An entry below ``checks:`` of a page, and the chapter with its examples."""

    fields: str
    chapter: str


def check_of(answers: Answers, read: Read, since: str, check_id: str) -> NewCheck:
    """The check alone. Raises `InvalidRequest` as `page_of` does."""
    _check_answers(answers)
    return _check_of(answers, _pasted(answers.run, read), read, since, check_id)


def _check_of(answers: Answers, pasted: _Pasted, read: Read, since: str, check_id: str) -> NewCheck:
    language, package = language_of(f"{answers.seen}\n{answers.why}"), answers.package
    run = pasted.evidence.run
    lines = [
        f"  - id: {check_id}",
        "    severity: warning",
        "    status: preview",
        f"    since: {since}",
        *([f"    applies: {{framework: [{run.framework.value}]}}"] if run.framework is not None else []),
        "    when: " + " and ".join((*map(_term, _named(pasted)), f'version("{package}", "{_range(answers)}")')),
        "    message: " + _text(language, answers.seen.replace("{", "{{").replace("}", "}}")),
    ]
    fix = f'upgrade: "{package}>={answers.fixed}"' if answers.fixed else f"text: {_text(language, answers.helps)}"
    lines.append(f"    fix: [{{{fix}, safety: display}}]")
    chapter = "\n".join((f"## Check {check_id}", *_examples(answers, pasted, read)))
    return NewCheck(fields="\n".join(lines), chapter=chapter)


def page_of(answers: Answers, read: Read, today: date, since: str, page_id: str = "") -> NewPage:
    """Raises `InvalidRequest` if an answer does not say enough for a page."""
    language = language_of(f"{answers.seen}\n{answers.why}")
    _check_answers(answers)
    pasted = _pasted(answers.run, read)
    run = pasted.evidence.run
    framework = run.framework.value if run.framework is not None else ""
    page_id = page_id or _id(answers.seen, framework or answers.package, pasted.options)
    said = read(answers.seen, ())
    signals = tuple(dict.fromkeys(signal.kind for signal in said.signals))
    shown = (kind for part, kind in _KINDS.items() if any(part in signal for signal in signals))
    family, effect = next(shown, ("configuration", ""))
    effect = effect or ("crash" if said.tracebacks or "Error" in answers.seen else "silent")
    upgrade, confirm = (text.format(package=answers.package, fixed=answers.fixed) for text in _WORDS[language])
    fix = " ".join(filter(None, (upgrade if answers.fixed else "", answers.helps)))
    sections = dict(zip(HEADINGS[language], (answers.seen, answers.why, fix, confirm), strict=True))
    if not answers.fixed:
        sections.popitem()
    check = _check_of(answers, pasted, read, since, page_id)
    fields = {
        "id": page_id,
        "title": _text(language, answers.seen),
        "family": family,
        "frameworks": f"[{framework or answers.package}]",
        "affected": f"{{{answers.package}: {_quoted(_range(answers))}}}",
        "fixed": f"fixed: {{{answers.package}: {_quoted(answers.fixed)}}}\neffect: {effect}\n" if answers.fixed else "",
        "signals": f"signals: [{', '.join(signals)}]\n" if signals else "",
        "symptoms": f"{{{language}: [{_quoted(answers.seen)}]}}",
        "today": today.isoformat(),
        "source": _quoted(answers.source),
        "check": check.fields,
        "language": language,
        "sections": "\n".join(f"### {heading}\n{text}" for heading, text in sections.items()),
        "chapter": check.chapter,
    }
    template = files(__package__).joinpath("skeletons", "cause.md").read_text(encoding="utf-8")
    return NewPage(id=page_id, framework=framework, text=template.format(**fields))


def _check_answers(answers: Answers) -> None:
    for release in filter(None, (answers.introduced, answers.fixed)):
        if parse_version(release) is None:
            raise InvalidRequest(
                f"{release!r} is not a release", hint="write one like 0.12.0, or ? where it is unknown"
            )
    if not (answers.introduced or answers.fixed):
        raise InvalidRequest("name the first release with it or the first without", hint="PACKAGE 0.11.0 ?")
    if not (answers.fixed or answers.helps):
        raise InvalidRequest("no release has the fix: say what helps until one does")


def _pasted(run: str, read: Read) -> _Pasted:
    """What is pasted without its marks. Raises `InvalidRequest` where no option is marked or read."""
    text, places = "", []
    for number, part in enumerate(run.strip().split(MARKS[0])):
        inside, closed, rest = part.partition(MARKS[1]) if number else ("", "", part)
        places += [(len(text), len(text) + len(inside))] if closed else []
        text += inside + rest
    kind = next((region.kind for region in read("", (Attachment(name="run.txt", content=text),)).regions), "")
    info = _BLOCKS.get(kind, "text run.txt")
    evidence = read("", (Attachment(name=info.split()[1], content=text),))
    options = {option.span: option for one in evidence.runs for option in one.options if not option.span.default}
    chosen = [option for span, option in options.items() if any(a <= _offset(text, span) < b for a, b in places)]
    if not chosen:
        known = ", ".join(option.key for option in options.values()) or "none"
        raise InvalidRequest(f"no option is marked; recognised options: {known}", hint="write [[--packing]]")
    ordered = sorted(chosen, key=lambda option: option.span.order)
    return _Pasted(info=info, text=text, evidence=evidence, options=tuple(ordered))


def _offset(text: str, span: Span) -> int:
    return sum(len(line) + 1 for line in text.split("\n")[: span.line - 1]) + span.column - 1


def _named(pasted: _Pasted) -> Iterator[tuple[str, object]]:
    """The marked options as a condition names them, with their values: canonical settings where they are one."""
    settings = {setting.option.span: setting for setting in pasted.evidence.run.settings.values() if setting.option}
    for option in pasted.options:
        setting = settings.get(option.span)
        if setting is not None and setting.name in vocabulary().settings:
            yield setting.name, setting.value
        else:
            yield f'option("{option.key}")', option.value


def _term(named: tuple[str, object]) -> str:
    name, value = named
    return name if value is True else f"{name} == {_quoted(value) if isinstance(value, str) else repr(value)}"


def _examples(answers: Answers, pasted: _Pasted, read: Read) -> Iterator[str]:
    """Fires with a release that has it; silent with one that has not, and without each of the options."""
    package = answers.package
    bad = answers.introduced or _before(package, answers.fixed)
    good = answers.fixed or _before(package, answers.introduced)
    run = pasted.without()[1]

    def listing(version: str, *, marked: bool = False) -> str:
        pin = f"{package}=={version}"
        return f"```text {LISTING}\n{f'{OPEN}{pin}{CLOSE}' if marked else pin}\n```"

    yield f"### Fires: {package} {bad}\n{pasted.marked()}\n{listing(bad, marked=True)}"
    yield f"### Silent: {package} {good}\n{run}\n{listing(good)}"
    for option, (name, _) in zip(pasted.options, _named(pasted), strict=True):
        text, block = pasted.without(option)
        files = (Attachment(name=pasted.name, content=text), Attachment(name=LISTING, content=f"{package}=={bad}"))
        # Without a known default the check cannot tell, and rightly so.
        unknown = "(" not in name and name not in read("", files).run.settings
        allowed = "\ncannot tell allowed" if unknown else ""
        yield f"### Silent: without {option.key}\n{block}\n{listing(bad)}{allowed}"
    yield f"### Cannot tell: the release decides\n{run}\nmissing: version:{package}"


def _range(answers: Answers) -> str:
    return ",".join(
        text
        for text in (answers.introduced and f">={answers.introduced}", answers.fixed and f"<{answers.fixed}")
        if text
    )


def _before(package: str, release: str) -> str:
    """The catalogued release before this one, else one that sorts before it."""
    earlier = [known for known in catalogue.versions(package) if version_key(known) < version_key(release)]
    if earlier:
        return earlier[-1]
    parts = [*Version(release).release, 0, 0][:3]
    last = max((number for number, part in enumerate(parts) if part), default=0)
    return ".".join(map(str, (*parts[:last], max(parts[last] - 1, 0), *(9 for _ in parts[last + 1 :]))))


def _id(seen: str, framework: str, options: Sequence[Option]) -> str:
    words = [word for word in _latin(seen) if word not in _FILLING]
    if len(words) < 3:  # a sentence in Chinese
        words = [*words, *(word for option in options for word in _latin(option.key.replace("_", " ")))]
    lead = [] if framework.replace("-", "") in "".join(words) else _latin(framework)
    return "-".join([*lead, *words][:LONGEST_ID])


def _latin(text: str) -> list[str]:
    return "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in text.lower()).split()


def _text(language: str, text: str) -> str:
    return f"{{{language}: {_quoted(text)}}}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
