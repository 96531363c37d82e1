"""How far an investigation may go, and why one was given up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

STEPS = 6
"""Calls of tools in one investigation."""
TIMES = 2
"""The deadline, in the model's own time limits."""
SAME = 3
"""So many calls alike are a loop; from the second on nothing is looked up again."""
MISTAKES = 3
"""So many calls running that cannot be read are given up on."""
RESERVED = 0.3
"""Share of the context kept for what tools return."""
MOST_RESERVED = 4096
"""Tokens kept for it at most."""
MOST_RESULT = 900
"""Tokens of one result."""
PER_STEP = 64
"""Tokens that a call and its frame take besides the result."""
CUT = "\n… (cut for lack of room)"
NO_ROOM = "There is no room for further results. Write the answer now."


class InvestigationStopped(Exception):
    """The investigation cannot go on; ``why`` is a name below ``why`` in messages.toml."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class Budget:
    """What is left of one investigation's steps and tokens. ``tokens_left`` is in tokens."""

    tokens_left: int
    turns: int = 0
    wanted: int = 0
    done: int = 0
    mistakes: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def last(self) -> bool:
        """Whether the model has to write now."""
        return self.done >= STEPS or self.tokens_left <= PER_STEP

    def want(self, calls: Sequence[Mapping[str, object]]) -> None:
        """The model wants these calls. Raises `InvestigationStopped` where they are too many."""
        self.wanted += len(calls)
        if self.wanted > STEPS:
            raise InvestigationStopped("steps")

    def repeated(self, tool: str, arguments: Mapping[str, object]) -> bool:
        """Whether this call was made before. Raises `InvestigationStopped` for a loop."""
        key = f"{tool} {json.dumps(arguments, sort_keys=True, ensure_ascii=True, default=str)}"
        self.seen[key] += 1
        if self.seen[key] >= SAME:
            raise InvestigationStopped("loop")
        return self.seen[key] > 1

    def step(self, *, readable: bool) -> int:
        """The number of the step that was done. Raises `InvestigationStopped` after too many that could not be read."""
        self.done += 1
        self.mistakes = 0 if readable else self.mistakes + 1
        if self.mistakes >= MISTAKES:
            raise InvestigationStopped("arguments")
        return self.done

    def fit(self, text: str, tokens: int) -> str:
        """The result as far as there is room for it; its tokens (``tokens`` for all of it) are taken off."""
        most = min(MOST_RESULT, self.tokens_left - PER_STEP)
        if most <= 0:
            self.tokens_left = 0
            return NO_ROOM
        if tokens > most:
            text, tokens = text[: len(text) * most // tokens] + CUT, most
        self.tokens_left -= tokens + PER_STEP
        return text


def reserved(context_tokens: int) -> int:
    """Tokens of the context kept for what tools return."""
    return min(MOST_RESERVED, int(context_tokens * RESERVED))
