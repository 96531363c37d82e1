"""Signs of a failure in the log of a run, and their step. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence, Signal
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.logs.metrics import finite_except
from trainmedic.kb.parse.logs.signal_kinds import BENIGN
from trainmedic.kb.parse.pipeline import parse

# Cheap, because it sees every line of a log; the real reading happens only if it matches.
SUSPICIOUS = regex(
    r"\bnan\b|\binf\b|error|traceback|exception|killed|timed? ?out|overflow|out of memory|non-finite|assert|abort"
    r"|fatal",
    re.IGNORECASE,
)
"""A line like this triggers a check at once; other lines wait for the next regular one."""
CERTAIN = frozenset(
    {
        *("loss_nan", "loss_inf", "loss_zero_grad_norm_nan", "eval_loss_nan", "nll_loss_nan"),
        *("grad_norm_nan", "grad_norm_inf", "reward_nan", "logps_nan", "logits_nan", "kl_nan"),
        *("oom", "cpu_oom_killed", "nccl_timeout", "nccl_error", "cuda_error", "cublas_error"),
        *("fp16_unscale_error", "loss_scale_collapse", "labels_all_ignored"),
    }
)
"""A run that shows one of these is broken, even if no case explains it."""
HEALTHY_ROWS = 3
"""Rows of finite numbers after a failure that show a run in progress again, as after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Signs of a failure, earliest first. ``certain``: at least one is in `CERTAIN`, or an exception ended the run.

    ``step`` is the training step of the first sign that has one, ``row`` the number of its logged row. ``after`` is the
    line of the last known failure from which the run recovered before these signs, 0 if there is none.
    """

    kinds: tuple[str, ...]
    step: int | None
    certain: bool
    row: int | None = None
    after: int = 0


def alarm(text: str, name: str, known: Collection[str] = (), every: int | None = None) -> Alarm | None:
    """The signs in a log that are not in ``known``, or None.

    ``every`` is the number of steps between rows of a ``text`` that is the whole log; it gives the step of Hugging
    Face's own rows, which state none.
    """
    evidence = parse("", (Attachment(name=name, content=text),))
    signs = [signal for signal in evidence.signals if not signal.stated and signal.kind not in BENIGN]
    new = [signal for signal in signs if signal.kind not in known]
    crashes = [trace for trace in evidence.tracebacks if trace.exception not in known]
    if not new and not crashes:
        return None
    ordered = sorted(new, key=_first)
    # A line that only looks like a traceback's last one has no exception to name.
    names = [trace.exception for trace in crashes if trace.exception]
    kinds = dict.fromkeys([signal.kind for signal in ordered] + names)
    certain = bool(crashes) or any(signal.kind in CERTAIN for signal in new)
    lines = [row.span.line for row in evidence.rows if not row.evaluation]
    row = next((lines.index(sign.span.line) + 1 for sign in ordered if sign.span.line in lines), None)
    step = next((sign.step for sign in ordered if sign.step is not None), None)
    # Hugging Face's rows hold an epoch and no step; with `logging_steps` the row number gives it.
    if step is None and row is not None and every is not None:
        step = row * every
    decisive = [sign.span.line for sign in new if sign.kind in CERTAIN] + [trace.span.line for trace in crashes]
    first = min(decisive or [sign.span.line for sign in new])
    return Alarm(kinds=tuple(kinds), step=step, certain=certain, row=row, after=_recovered(evidence, known, first))


def _recovered(evidence: Evidence, known: Collection[str], first: int) -> int:
    """The line of the last known failure before line ``first`` if enough healthy rows lie between them, else 0."""
    failures = CERTAIN.intersection(known)
    signs = [signal.span.line for signal in evidence.signals if signal.kind in failures and not signal.stated]
    crashes = [trace.span.line for trace in evidence.tracebacks if trace.exception in known]
    last = max((line for line in (*signs, *crashes) if line < first), default=0)
    # A log that goes on with NaN has not recovered: every row counts, and so does the last broken one.
    rows = [row for row in evidence.rows if not row.evaluation and last < row.span.line < first]
    broken = [row.span.line for row in rows if not finite_except(row)]
    last = max((last, *broken))
    healthy = sum(row.span.line > last for row in rows)
    return last if healthy >= HEALTHY_ROWS else 0


def _first(signal: Signal) -> tuple[bool, int, int]:
    """Certain signs first, then by line: a loss that is flat because it is NaN is a NaN."""
    return (signal.kind not in CERTAIN, signal.span.line, signal.span.column)
