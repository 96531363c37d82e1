"""``1e-5`` without a decimal point in a LLaMA-Factory YAML file: PyYAML reads a text, and nothing converts it."""

from __future__ import annotations

import re

from kb.model.run import Origin
from kb.rules.facts import Facts
from kb.rules.logic.accepts import judged
from kb.rules.logic.option_hints import Offence, report
from kb.rules.logic.option_values import plain, readable
from kb.rules.outcome import Outcome

_SCIENTIFIC = re.compile(r"([+-]?[0-9]+)([eE][+-]?[0-9]+)")


def check(facts: Facts) -> Outcome:
    """Fires on options that want a number; the page bounds the version."""
    found = []
    for option, reader, verdict in judged(facts):
        if reader.catalogue != "llamafactory" or option.origin is not Origin.YAML or option.quoted:
            continue
        info = readable(option, verdict)
        match = _SCIENTIFIC.fullmatch(option.raw or "")
        if info is None or match is None or not isinstance(option.value, str) or plain(info.type or "") != "float":
            continue
        better = f"{match[1]}.0{match[2]}"
        found.append(Offence(option, f"{option.raw} is a text; write {better}", f"{option.raw} 是文本，应写 {better}"))
    return report(found, facts)
