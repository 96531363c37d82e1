"""``1e-5`` without a decimal point in a LLaMA-Factory YAML file: PyYAML reads a text, and nothing converts it."""

from __future__ import annotations

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_values import plain, readable
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Origin

_SCIENTIFIC = regex(r"([+-]?[0-9]+)([eE][+-]?[0-9]+)")


def check(facts: Facts) -> Outcome:
    """Fires on options that want a number; the page bounds the version."""
    offences = []
    own = facts.name("framework").value
    for option, reader, verdict in judged(facts):
        if reader.catalogue != own or option.origin is not Origin.YAML or option.quoted:
            continue
        info = readable(option, verdict)
        match = _SCIENTIFIC.fullmatch(option.raw or "")
        if info is None or match is None or not isinstance(option.value, str) or plain(info.type or "") != "float":
            continue
        better = f"{match[1]}.0{match[2]}"
        offences.append(
            Offence(option, f"{option.raw} is a text; write {better}", f"{option.raw} 是文本，应写 {better}")
        )
    return report(offences, facts)
