"""Options that a write-up recommends although its framework has none of that name. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainmedic.ingest.drafts.draft import Mark, Passage
from trainmedic.ingest.drafts.sections import prose_lines
from trainmedic.ingest.items import Block
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.profiles import select, title
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Text

_OPTION = regex(r"--(?P<flag>[A-Za-z][\w.-]*\w)|`(?P<name>[a-z]\w*_[\w.]+)`?\s?[:=]", re.ASCII)
_OF_LIBRARIES = ("", *select("library", "server"))


def unknown_options(blocks: Sequence[Block], evidence: Evidence) -> Iterator[Mark]:
    """A mark for each line below a heading of a fix that names such an option."""
    framework = evidence.run.framework.value if evidence.run.framework else ""
    if not catalogue.versions(framework):
        return
    version = evidence.versions.get(framework)
    release = str(version.exact) if version is not None and version.exact is not None else None
    for section, number, line in prose_lines(blocks):
        for match in _OPTION.finditer(line) if section == "fix" else ():
            name = (match["flag"] or match["name"]).replace("-", "_")
            why = _unknown(framework, release, name)
            if why is not None:
                passage = Passage(first_line=number, last_line=number, text=line)
                yield Mark(kind="option", claim=passage, page=f"option:{framework}:{name}", why=why)


def _unknown(framework: str, release: str | None, name: str) -> Text | None:
    """That there is no such option; None if it may be one of a library below, a launcher or the user's own script."""
    if catalogue.option(framework, name, release) is not None or name in catalogue.history(framework):
        return None
    suggestion = catalogue.suggest(framework, name, release)
    why = suggestion.why if suggestion is not None else ""
    if not catalogue.is_option(name):
        if why != "spelling":
            return None
    elif why in ("", "framework") and (suggestion.framework if suggestion is not None else "") in _OF_LIBRARIES:
        return None
    near = suggestion.key if suggestion is not None and why == "spelling" else ""
    where = f"{title(framework)} {release}" if release else title(framework)
    return Text(
        en=f"{where} has no option {name}." + (f" Its name is {near}." if near else ""),
        zh=f"{where} 没有 {name} 这个选项。" + (f"正确的名字是 {near}。" if near else ""),
    )
