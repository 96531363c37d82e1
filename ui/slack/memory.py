"""In-process memory, all bounded: events seen, answers posted, questions asked back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer import Answer

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
EVENTS = 20_000
THREADS = 5_000
ANSWERS = 300


class Recent(Generic[K, V]):
    """A mapping that keeps the ``size`` values put in last."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._size:
            self._values.popitem(last=False)

    def drop(self, key: K) -> None:
        self._values.pop(key, None)


class SeenEvents:
    """Events already handled: Slack delivers at least once, and one message under two event ids.

    Not on disk: if the process dies before it answers, the repeated event must be answered.
    """

    def __init__(self, size: int = EVENTS) -> None:
        self._seen: Recent[Hashable, bool] = Recent(size)

    def claim(self, *keys: Hashable) -> bool:
        """Whether none of the keys was claimed before; claims all of them."""
        known = any(self._seen.get(key) for key in keys)
        for key in keys:
            self._seen.put(key, True)
        return not known


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedAnswer:
    """An answer with its question and attachments, masked."""

    answer: Answer
    question: str
    attachments: tuple[Attachment, ...] = ()
