"""Hooks of mkdocs: the knowledge as pages, made when the site is built, and links that lead out of the documents."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.frameworks.profiles import title
from trainmedic.kb.model.case import Case
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.defect import load_defects
from trainmedic.kb.pages.mechanism import load_mechanisms
from trainmedic.kb.pages.render import render_case, render_mechanism
from trainmedic.kb.pages.rule import load_rules

ROOT = Path(__file__).parent.parent
SOURCE = "https://github.com/trainmedic/trainmedic/blob/main/"
BESIDE = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    *(p.relative_to(ROOT).as_posix() for p in ROOT.glob("kb/*/README.md")),
)
"""Pages outside of docs/ that the site has too, under their own paths."""
FOLDERS = {"en": "knowledge", "zh": "zh"}
NAMES = {
    "en": {
        "causes": "Causes",
        "checks": "Checks",
        "mechanisms": "Mechanisms",
        "defects": "Known defects",
        "other": "others",
    },
    "zh": {"causes": "原因", "checks": "检查", "mechanisms": "机制", "defects": "已知缺陷", "other": "其他"},
}
WIDE = "---\nhide: [toc]\n---\n"
COLUMNS = {"en": ("defect", "releases", "effect", "what to do"), "zh": ("缺陷", "版本", "后果", "怎么办")}
_LINK = re.compile(r"(?<=\]\()(?!#|[a-z]+:)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File  # here, so that tests of the pages need no mkdocs

    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in BESIDE}
    texts["index.md"] = (ROOT / "README.md").read_text(encoding="utf-8")
    for language, folder in FOLDERS.items():
        texts |= {f"{folder}/{name}.md": text for name, text in knowledge(language)}
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files that the site does not have lead to the repository."""
    here = _origin(page.file.src_uri)
    sites = {_origin(file.src_uri): file.src_uri for file in files if file.inclusion.is_included()}

    def resolved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), match[1]))
        if target not in sites:
            return f"{SOURCE}{target}{match[2] or ''}"
        return posixpath.relpath(sites[target], posixpath.dirname(page.file.src_uri) or ".") + (match[2] or "")

    return _LINK.sub(resolved, markdown) if here.endswith(".md") and os.path.exists(ROOT / here) else markdown


def _origin(uri: str) -> str:
    """The path of a page of the site in the repository."""
    return "README.md" if uri == "index.md" else uri if uri in BESIDE else f"docs/{uri}"


def knowledge(language: str) -> Iterator[tuple[str, str]]:
    """The pages of one language by name."""
    cases, rules, mechanisms = load_cases(), load_rules(), load_mechanisms()
    names = NAMES[language]
    published = sorted(cases.published, key=lambda case: (_framework(case), case.id))
    for case in published:
        yield f"causes/{case.id}", _linked(render_case(case, language), {rule.id for rule in rules.rules})
    yield (
        "causes",
        _index(
            names["causes"],
            ((_framework(case), case.id, case.title.get(language)) for case in published),
            "causes",
            names["other"],
        ),
    )
    for mechanism in mechanisms.mechanisms:
        yield f"mechanisms/{mechanism.id}", render_mechanism(mechanism, None, language)
    listed = sorted((m.family, m.id, m.title.get(language)) for m in mechanisms.mechanisms)
    yield "mechanisms", _index(names["mechanisms"], listed, "mechanisms", names["other"])
    rows = (
        f'| <a id="{rule.id}"></a>`{rule.id}` | {rule.severity.value} | {_cell(rule.title.get(language))} | '
        f"{', '.join(f'[{case}](causes/{case}.md)' for case in rule.cases if cases.get(case) in published)} |"
        for rule in rules.rules
    )
    yield "checks", f"{WIDE}# {names['checks']}\n\n| | | | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    defects = load_defects().by_package
    for package, found in defects.items():
        yield f"defects/{package}", _table(package, found, language)
    counts = (f"- [{package}](defects/{package}.md): {len(found)}" for package, found in defects.items())
    yield "defects", f"# {names['defects']}\n\n" + "\n".join(counts) + "\n"


def _framework(case: Case) -> str:
    return title(case.frameworks[0]) if len(case.frameworks) == 1 else ""


def _index(name: str, entries: Iterable[tuple[str, str, str]], folder: str, other: str) -> str:
    parts = [f"# {name}"]
    for group, listed in groupby(entries, key=lambda entry: entry[0]):
        parts.append(f"## {group or other}\n")
        parts[-1] += "".join(f"\n- [{text}]({folder}/{identifier}.md)" for _, identifier, text in listed)
    return "\n\n".join(parts) + "\n"


def _table(package: str, defects: Iterable[Defect], language: str) -> str:
    rows = [f"{WIDE}# {package}", "", f"| {' | '.join(COLUMNS[language])} |", "|---|---|---|---|"]
    for defect in defects:
        name = (
            f"[{_cell(defect.title.get(language))}]({defect.link})"
            if defect.link
            else _cell(defect.title.get(language))
        )
        todo = _cell(defect.workaround.get(language)) if defect.workaround else ""
        rows.append(f'| <a id="{defect.id}"></a>{name} | {_cell(defect.affected)} | {defect.effect.value} | {todo} |')
    return "\n".join(rows) + "\n"


def _linked(text: str, rules: set[str]) -> str:
    """The text with links to the checks that it names."""
    return re.sub(r"`([a-z0-9-]+)`", lambda m: f"[`{m[1]}`](../checks.md#{m[1]})" if m[1] in rules else m[0], text)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
