"""What every channel is given: the parts that the composition root has put together."""

from __future__ import annotations

from dataclasses import dataclass

from service.advisor import Advisor
from service.asking import Asker, Run
from service.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """``asker`` answers questions, with the model where there is one; ``run`` does the advisor's other work in threads.

    ``advisor`` gives what stands beside answers: cases, rules, search, feedback, answers given before.
    """

    settings: Settings
    advisor: Advisor
    asker: Asker
    run: Run
