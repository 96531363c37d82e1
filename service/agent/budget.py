"""The budget of an investigation: steps, repeated calls, malformed calls, tokens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

STEPS = 6
"""The most tool calls in one investigation."""
TIMES = 2
"""The deadline as a multiple of the model's own time limit."""
SAME = 3
"""This many equal calls are a loop; from the second on the tool is not run again."""
MISTAKES = 3
"""After this many malformed calls in a row the investigation stops."""
# The rest is for the prompt: the cases in it decide more than what is looked up.
RESERVED = 0.3
"""The share of the context reserved for tool results."""
MOST_RESERVED = 4096
"""The most tokens reserved for them."""
MOST_RESULT = 900
"""The most tokens of one result."""
PER_STEP = 64
"""Tokens of a call and its framing, besides the result."""
TRUNCATED = "\n… (cut for lack of room)"
NO_ROOM = "There is no room for further results. Write the answer now."


class InvestigationStopped(Exception):
    """The investigation cannot go on; ``why`` is a name below ``why`` in messages.toml."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class Budget:
    """The remaining steps and tokens of one investigation."""

    tokens_left: int
    requested: int = 0
    done: int = 0
    mistakes: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def exhausted(self) -> bool:
        """Whether the model must write its text now."""
        return self.done >= STEPS or self.tokens_left <= PER_STEP

    def request(self, calls: Sequence[Mapping[str, object]]) -> None:
        """Count the calls that the model requests. Raises `InvestigationStopped` if they are too many."""
        self.requested += len(calls)
        if self.requested > STEPS:
            raise InvestigationStopped("steps")

    def repeated(self, tool: str, arguments: Mapping[str, object]) -> bool:
        """Count this call and return whether it was made before. Raises `InvestigationStopped` for a loop."""
        key = f"{tool} {json.dumps(arguments, sort_keys=True, ensure_ascii=True, default=str)}"
        self.seen[key] += 1
        if self.seen[key] >= SAME:
            raise InvestigationStopped("loop")
        return self.seen[key] > 1

    def step(self, *, valid: bool) -> int:
        """Count a finished step and return its number. Raises `InvestigationStopped` after too many malformed calls."""
        self.done += 1
        # In a row: a model that learns from the error message may go on.
        self.mistakes = 0 if valid else self.mistakes + 1
        if self.mistakes >= MISTAKES:
            raise InvestigationStopped("arguments")
        return self.done

    def fit(self, text: str, tokens: int) -> str:
        """The result, truncated to the remaining tokens, which it uses up. ``tokens`` is the size of the whole text."""
        most = min(MOST_RESULT, self.tokens_left - PER_STEP)
        if most <= 0:
            self.tokens_left = 0
            return NO_ROOM
        if tokens > most:
            # In proportion, since an exact cut would need another count by the endpoint.
            text, tokens = text[: len(text) * most // tokens] + TRUNCATED, most
        self.tokens_left -= tokens + PER_STEP
        return text


def reserved_tokens(context_tokens: int) -> int:
    return min(MOST_RESERVED, int(context_tokens * RESERVED))
