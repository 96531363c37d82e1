"""The text of a new page. It loads, and lint complains only about the empty parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from importlib.resources import files

from trainmedic.ingest.drafts.draft import Draft, DraftField, article_lines
from trainmedic.kb.parse.pipeline import parse


def _template(name: str) -> str:
    return files(__package__).joinpath("skeletons", f"{name}.md").read_text(encoding="utf-8")


EXAMPLE_RULE: Mapping[str, str] = {
    "signals": "loss_nan",
    "frameworks": "trl",
    "when": 'micro_batch == 1 and version("trl", "<0.12.0")',
    "setting": "micro_batch",
    "good": "2",
    "cases": "",
    "url": "https://github.com/OWNER/REPO/issues/NUMBER",
    "says": "maintainer",
}
"""What a rule page is filled with if there is no write-up."""
EXAMPLE_FILES: Mapping[str, str] = {
    "command": "bash train.sh",
    "yaml": "yaml config.yaml",
    "json": "json config.json",
    "toml": "toml config.toml",
    "python": "python train.py",
    "log": "text train.log",
    "metrics": "text train.log",
    "traceback": "text train.log",
    "versions": "text pip.txt",
}
"""Kind of a write-up's code block → how an example names it."""
NEAR_MISSES = ("The same run with another value", "The same run with another version or condition")


def skeleton(kind: str, page_id: str, version: str, today: date, folder: str = "numerics") -> str:
    """``kind`` is case, mechanism or rule, ``folder`` the name of the page's folder, which is a mechanism's family."""
    values = {**EXAMPLE_RULE, "id": page_id, "version": version, "today": today.isoformat(), "folder": folder}
    return _template(kind).format_map({**values, "examples": _template("rule-examples")})


def rule_of_draft(draft: Draft, version: str) -> str:
    """A rule page whose condition and example are those of the write-up: its configuration, log and versions.

    The values that the condition is about are marked in the example. The near misses are copies to be changed.
    """
    blocks = [block for block in _code(draft) if block.info]
    packages = [text.rpartition(" ") for text in draft.values("version")]
    pins = [f"{package}=={number}" for package, _, number in packages[:1]]
    if pins and not any(pins[0] in block.text for block in blocks):
        blocks.append(_CodeBlock(pins[0], 0, EXAMPLE_FILES["versions"]))
    settings = _decisive(draft, blocks)
    name, _, value = settings[0].value.partition(" = ") if settings else ("micro_batch", "", "1")
    facts = [f"{key} == {_literal(text)}" for key, _, text in (field.value.partition(" = ") for field in settings)]
    facts += [f'version("{package}", "=={number}")' for package, _, number in packages[:1]]
    fires = "\n".join(block.example(settings) for block in blocks)
    copy = "\n".join(block.example(()) for block in blocks)
    near = "\n\n".join(f"### {heading}\n\n{copy}" for heading in NEAR_MISSES)
    return _template("rule").format_map(
        {
            **EXAMPLE_RULE,
            "id": draft.id.removeprefix("draft-"),
            "version": version,
            "signals": ", ".join(sorted(set(draft.values("signal")))),
            "frameworks": ", ".join(draft.values("framework")),
            "when": " and ".join(facts) or EXAMPLE_RULE["when"],
            "setting": name,
            "good": {"true": "false", "false": "true"}.get(value, EXAMPLE_RULE["good"]),
            "cases": ", ".join(draft.related[:1]),
            "url": draft.url or EXAMPLE_RULE["url"],
            "says": "reporter",
            "examples": f"## Fires\n\n### {draft.title}\n\n{fires}\n\n## Silent\n\n{near}\n",
        }
    )


@dataclass(frozen=True, slots=True)
class _CodeBlock:
    """``first_line`` is that of the code in the draft's lines, ``info`` the language and file name of an example."""

    text: str
    first_line: int
    info: str

    def example(self, settings: Iterable[DraftField]) -> str:
        lines = self.text.splitlines()
        for field in settings:
            for passage in field.passages:
                at = passage.first_line - self.first_line
                if 0 <= at < len(lines):
                    lines[at] = lines[at].replace(passage.text, f"⟦{passage.text}⟧", 1)
        text = "\n".join(lines).replace("```", "'''")
        return f"```{self.info}\n{text}\n```"


def _code(draft: Draft) -> Iterator[_CodeBlock]:
    line = 2
    for block in draft.blocks:
        if block.kind == "code":
            kind = next((region.kind for region in parse(block.text).regions), "")
            yield _CodeBlock(block.text, line + 1, EXAMPLE_FILES.get(kind, ""))
        line += len(tuple(article_lines("", (block,)))) - 1


def _decisive(draft: Draft, blocks: Iterable[_CodeBlock]) -> list[DraftField]:
    """The settings in the write-up's configuration that its cause or fix names, else the first of them."""
    lines = {block.first_line + at for block in blocks for at in range(len(block.text.splitlines()))}
    settings = [
        field
        for field in draft.fields
        if field.name == "setting" and " = " in field.value and any(p.first_line in lines for p in field.passages)
    ]
    prose = _option_form(" ".join((*draft.values("cause"), *draft.values("fix"))))
    blamed = [
        field
        for field in settings
        if any(_option_form(p.text.replace("=", " ")).split()[0].rstrip(":") in prose for p in field.passages)
    ]
    return (blamed or settings[:1])[:2]


def _option_form(text: str) -> str:
    """A text with its options as words: ``--max-len`` as ``max_len``."""
    return text.casefold().replace("--", "").replace("-", "_")


def _literal(text: str) -> str:
    number = text.replace(".", "", 1).replace("-", "", 2).replace("e", "", 1).isdigit()
    return text if number else text.capitalize() if text in ("true", "false") else f'"{text}"'
