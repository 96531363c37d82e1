"""``None`` or ``null`` for an option that takes text: it arrives as that word, not as nothing."""

from __future__ import annotations

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_values import plain, readable
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.model.run import Origin

_READ = ("report_to", "post_processor")
"""Options whose readers know such a word."""
_WORDS = ("None", "null", "Null", "NULL")


def check(facts: Facts) -> Outcome:
    """Fires on a command line, and on ``None`` in a LLaMA-Factory YAML file (``null`` is nothing there)."""
    offences = []
    for option, reader, verdict in judged(facts):
        info = readable(option, verdict)
        if info is None or option.raw not in _WORDS or info.choices or plain(info.type or "") != "str":
            continue
        if profiles()[reader.catalogue].text_none or info.key in _READ:
            continue
        flag = reader.how == "argparse" and option.origin is Origin.FLAG
        file = reader.how == "dict" and option.origin is Origin.YAML and option.raw == "None" and not option.quoted
        if flag or file:
            offences.append(Offence(option, f"the text {option.raw!r}", f"得到的是文本 {option.raw!r}"))
    return report(offences, facts)
