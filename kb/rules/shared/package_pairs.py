"""Two packages that do not work together: for modules of rules about pairs of versions.

Only a pair that is given whole counts. A single version asks for nothing: nearly every paste names transformers and
leaves something else out.
"""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome


def pair(facts: Facts, first: tuple[str, str], second: tuple[str, str]) -> Outcome:
    """Fires where both versions are known and lie in their ranges; (package, range) each."""
    one, other = facts.version(*first), facts.version(*second)
    if one.value is True and other.value is True:
        return Outcome(value=True, evidence=(*one.spans, *other.spans), user_provided=True)
    return Outcome(value=False)
