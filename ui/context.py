"""What every channel is given: the parts that the composition root has put together."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import Answerer, Run
from trainmedic.service.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext:
    """``asker`` answers questions, with the model where there is one; ``run`` does the advisor's other work in threads.

    ``advisor`` gives what stands beside answers: cases, rules, search, feedback, answers given before.
    """

    settings: Settings
    advisor: Advisor
    asker: Answerer
    run: Run
