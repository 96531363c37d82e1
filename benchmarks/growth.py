"""Repetitive pastes whose reading grows faster than their length.

    python -m benchmarks.growth [--target NAME …] [--only TEXT] [--share 0.1] [--seed 0]

Each paste repeats a unit (taken from configurations, commands, logs, listings, tables, Markdown and tracebacks), alone
or after an opening, before an ending, line by line, numbered, nested, or ever deeper indented. It is read at two
lengths; those whose processor time grows like n^1.3 or faster are printed with the place that takes the time.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import pstats
import random
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from types import FrameType

from trainmedic.ingest.personal import hidden, hidden_markdown
from trainmedic.kb.error_messages.explain import explain
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue import conversation
from trainmedic.service.dialogue.intent import understand
from trainmedic.service.dialogue.query import build_query
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.dialogue.statements import statements_in
from trainmedic.service.dialogue.topic import says_solved
from trainmedic.service.dialogue.turn import turn_of
from trainmedic.service.settings import Settings
from trainmedic.ui.checking import examine
from trainmedic.ui.loading import load_knowledge

SHORT, LONG = 2_000, 16_000
"""Characters of a paste, read at both lengths."""
EXPONENT = 1.3
NOTICEABLE_S = 0.06
"""Less processor time for the longer paste is not judged: the clock and the caches would decide."""
LIMIT_S = 2.0

_TABLE = tomllib.loads(Path(__file__).with_name("data").joinpath("growth.toml").read_text(encoding="utf-8"))
FRAMES = ("", "python train.py --lr", "a: ")
"""Openings that every ending is tried with."""
BLOCKS = ("", "a:\n", "Traceback (most recent call last):\n", "x = [\n", "python train.py \\\n")
EARLIER = "GRPO with trl 0.19: the loss is nan\n\npython train.py --lr 1e-5 --bf16"
NESTED = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"), ("{'a': ", "}"), ('{"a": ', "}"), ("f(a=", ")"), ("[{", "}]"))


@dataclass(frozen=True, slots=True)
class Paste:
    """``unit`` repeated between ``opening`` and ``ending``, in one of the forms of `make`."""

    opening: str
    unit: str
    ending: str = ""
    form: str = "run"

    @property
    def label(self) -> str:
        return f"{self.form} {self.opening!r} {self.unit!r} {self.ending!r}"

    def make(self, characters: int) -> str:
        """The text, of about that many characters."""
        unit = self.unit
        if self.form == "numbered":
            return "".join(f"{unit}k{number}: 1\n" for number in range(characters // (len(unit) + 7)))
        if self.form == "counted":
            return "".join(f"k{number}{unit}1 " for number in range(characters // (len(unit) + 6)))
        if self.form == "stairs":
            return "".join(" " * number + f"{unit}\n" for number in range(math.isqrt(2 * characters)))
        if self.form == "nested":
            depth = characters // (len(self.opening) + len(self.ending))
            return self.opening * depth + unit + self.ending * depth
        return self.opening + unit * (characters // len(unit)) + self.ending


def pastes() -> Iterator[Paste]:
    """Every paste that the lists above give."""
    for unit in _TABLE["units"]:
        yield from (Paste(opening, unit) for opening in _TABLE["openings"])
        yield from (Paste(opening, unit, ending) for opening, ending in product(FRAMES, _TABLE["endings"]))
        line = unit.strip("\n")
        yield from (Paste(opening, f"{line}\n", form="lines") for opening in BLOCKS)
        yield from (Paste("", line, form=form) for form in ("numbered", "counted", "stairs"))
        yield Paste("", f"{line}{' ' * 99}\n", form="blanks")
        yield Paste("", f"{unit}a: 1\n--b c\n", form="alternating")
    yield from (
        Paste(opening, core, ending, "nested") for (opening, ending), core in product(NESTED, ("", "1", "a: 1"))
    )


class Slow(Exception):
    """The time limit of one reading has passed."""


def seconds(call: Callable[[str], object], text: str) -> float:
    """Processor seconds of one call, `LIMIT_S` at most."""

    def stop(_: int, __: FrameType | None) -> None:
        raise Slow

    previous = signal.signal(signal.SIGVTALRM, stop)
    started = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        call(text)
    except Slow:
        return LIMIT_S
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    return time.process_time() - started


def exponent(call: Callable[[str], object], paste: Paste) -> tuple[float, float]:
    """The exponent of the growth (0 if too fast to judge, infinite beyond the limit) and the longer text's seconds."""
    short, long = paste.make(SHORT), paste.make(LONG)
    took = seconds(call, long)
    if took < NOTICEABLE_S:
        return 0.0, took
    times = LIMIT_S, LIMIT_S
    if took >= LIMIT_S:
        return math.inf, took
    growth = math.log(max(1.01, len(long) / max(1, len(short))))
    for _ in range(3):  # another process may have taken the caches away: the best of several counts
        times = min(times[0], seconds(call, short)), min(times[1], seconds(call, long))
        steepness = math.log(max(times[1], 1e-4) / max(times[0], 1e-4)) / growth
        if steepness < EXPONENT or times[1] < NOTICEABLE_S:
            return 0.0, times[1]
    return steepness, times[1]


def attached(name: str, text: str) -> object:
    """A text read as a file of this name."""
    return parse("why?", [Attachment(name=name, content=text)])


def checked(text: str) -> object:
    """A text through the rules and their patches."""
    return examine([Attachment(name="run.md", content=text)], ())


def understood(text: str) -> object:
    """A text as a first message and as a later one of a conversation."""
    glossary = load_glossary()
    first = conversation.message_of(text, (), (), glossary, parse)
    later = conversation.message_of(text, (), [turn_of(EARLIER)], glossary, parse)
    intents = [understand(message.question, message.evidence, glossary) for message in (first, later)]
    query = build_query(later.evidence, Report(), later.question, glossary=glossary)
    return intents, query, explain(first.evidence), says_solved(text), statements_in(text, None, glossary, parse)


def asked(text: str) -> object:
    """A text as a question, answered without a model."""
    return knowing().prepare(Ask(question=text or "why?"))


@cache
def knowing() -> Advisor:
    return Advisor(load_knowledge(Settings()), parse)


def readings() -> dict[str, Callable[[str], object]]:
    """What reads a paste, by name."""
    calls: dict[str, Callable[[str], object]] = {
        "mask": mask,
        "personal": lambda text: (hidden(text), hidden(text, code=True)),
        "personal_markdown": hidden_markdown,
        "question": parse,
    }
    calls |= {"understood": understood, "checked": checked, "asked": asked}
    for name in _TABLE["files"]:
        calls[name] = partial(attached, name)
    return calls


def hottest(call: Callable[[str], object], text: str) -> str:
    """The function that takes the most time itself, and what calls it."""
    profile = cProfile.Profile()
    seconds(lambda content: profile.runcall(call, content), text)
    table = pstats.Stats(profile).get_stats_profile().func_profiles
    name, place = max(table.items(), key=lambda item: item[1].tottime)
    callers = sorted(table.items(), key=lambda item: -item[1].cumtime)
    path = " > ".join(
        key for key, value in callers[:12] if any(part in value.file_name for part in ("/kb/", "/service/", "/ingest/"))
    )
    return f"{name} {place.tottime:.2f} s, in {path}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    calls = readings()
    parser.add_argument("--target", action="append", choices=[*calls])
    parser.add_argument("--only", default="", help="a part of the label")
    parser.add_argument("--share", type=float, default=1.0, help="of the pastes, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    draw = random.Random(options.seed)
    chosen = [paste for paste in pastes() if options.only in paste.label and draw.random() < options.share]
    steep = read = 0
    slowest = (0.0, "")
    for name in options.target or calls:
        calls[name]("warm")
        for paste in chosen:
            read += 1
            found, took = exponent(calls[name], paste)
            slowest = max(slowest, (took, f"{name}: {paste.label}"))
            if found >= EXPONENT:
                steep += 1
                place = hottest(calls[name], paste.make(LONG))
                print(f"n^{found:.1f} {took:5.2f} s  {name}: {paste.label}\n    {place}", flush=True)
    print(f"{read} readings of {LONG} characters, {steep} grow faster than n^{EXPONENT}")
    print(f"slowest {slowest[0]:.2f} s, {slowest[1]}")
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
