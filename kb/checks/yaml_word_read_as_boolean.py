"""``no``, ``off``, ``yes`` or ``on`` without quotes, for an option that wants a word: YAML makes it a truth value."""

from __future__ import annotations

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_values import plain, readable
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.model.run import Origin

_WORDS = ("no", "off", "yes", "on", "n", "y")
_TEXT = ("str", "IntervalStrategy | str", "SaveStrategy | str", "Union[IntervalStrategy, str]", "AttentionFunction")


def check(facts: Facts) -> Outcome:
    """Fires in files whose values are taken as YAML reads them: LLaMA-Factory's and axolotl's."""
    offences = []
    for option, reader, verdict in judged(facts):
        if option.origin is not Origin.YAML or option.quoted or not isinstance(option.value, bool):
            continue
        info = readable(option, verdict)
        if info is None or reader.how not in ("dict", "pydantic") or (option.raw or "").lower() not in _WORDS:
            continue
        if plain(info.type or "") in _TEXT:
            word = str(option.value).lower()
            offences.append(
                Offence(option, f'YAML reads {word}; write "{option.raw}"', f'YAML 读成 {word}，应写 "{option.raw}"')
            )
    return report(offences, facts)
