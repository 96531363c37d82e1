"""``None`` or ``null`` for an option that takes text: it arrives as that word, not as nothing."""

from __future__ import annotations

from kb.model.run import Origin
from kb.rules.facts import Facts
from kb.rules.logic.accepts import judged
from kb.rules.logic.option_hints import Offence, report
from kb.rules.logic.option_values import plain, readable
from kb.rules.outcome import Outcome

_READ = ("report_to", "post_processor")
"""Options whose readers know such a word."""
_WORDS = ("None", "null", "Null", "NULL")


def check(facts: Facts) -> Outcome:
    """Fires on a command line, and on ``None`` in a LLaMA-Factory YAML file (``null`` is nothing there)."""
    found = []
    for option, reader, verdict in judged(facts):
        info = readable(option, verdict)
        if info is None or option.raw not in _WORDS or info.choices or plain(info.type or "") != "str":
            continue
        if reader.catalogue == "ms-swift" or info.key in _READ:
            continue
        flag = reader.how == "argparse" and option.origin is Origin.FLAG
        file = reader.how == "dict" and option.origin is Origin.YAML and option.raw == "None" and not option.quoted
        if flag or file:
            found.append(Offence(option, f"the text {option.raw!r}", f"得到的是文本 {option.raw!r}"))
    return report(found, facts)
