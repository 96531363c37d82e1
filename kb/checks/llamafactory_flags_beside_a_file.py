"""A configuration file with flags behind it, which LLaMA-Factory does not read together."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, Region

_FILE = regex(
    r"(?:\b(?:train|export|chat|webchat|api|eval)|src/train\.py)"
    r"(?:[ \t]|\\\n){1,40}(?P<file>[\w./~$\{\}-]{1,300}\.(?:ya?ml|json))(?=[ \t\n\\]|$)"
)
_SHOWN = 3


def check(facts: Facts) -> Outcome:
    """Fires on the first command that has both."""
    for region in facts.run.regions:
        flags = [option for option in region.options if option.origin is Origin.FLAG and not option.scope]
        match = _FILE.search(_text(facts, region)) if region.kind == "command" and flags else None
        if match is not None:
            return fires(
                *(flag.span for flag in flags),
                file=match["file"],
                flags=", ".join(f"--{flag.key}" for flag in flags[:_SHOWN]),
                pairs=" ".join(_pair(flag) for flag in flags[:_SHOWN]),
            )
    return CLEAR


def _text(facts: Facts, region: Region) -> str:
    """The command's lines."""
    text = next((source.text for source in facts.evidence.sources if source.name == region.source), "")
    return "\n".join(text.split("\n")[region.start_line - 1 : region.end_line])


def _pair(flag: Option) -> str:
    return f"{flag.key}={flag.raw if flag.raw is not None else 'true'}"
