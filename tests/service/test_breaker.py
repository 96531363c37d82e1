"""The circuit breaker on a clock that the test turns."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.breaker import Breaker


class Clock:
    """Seconds, as many as the test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


OPEN = "ask fail ask fail ask fail"


@every_case(
    ("what", "script"),
    [
        ("the third failure running opens it", "ask fail ask fail closed ask fail open refused"),
        ("a success between failures starts the count again", "ask fail ask fail ok ask fail ask fail ok closed ask"),
        ("it rests for the time given and not less", f"{OPEN} 29.9 open 0.1 half_open"),
        ("after the rest one call may try and no other", f"{OPEN} 30 ask refused refused"),
        ("a trial that succeeds closes it", f"{OPEN} 30 ask ok closed ask ask ask"),
        ("a trial that fails opens it for a whole rest again", f"{OPEN} 30 ask fail open 29 refused 1 ask"),
        ("a trial given up leaves the next asker to try", f"{OPEN} 30 ask drop half_open ask refused"),
        ("a call given up counts neither for nor against", "ask fail ask fail ask drop closed ask fail open"),
        ("an old call that is given up leaves the trial alone", f"ask {OPEN} 30 ask refused drop:1 refused"),
        (
            "an old call that fails ends no trial and prolongs no rest",
            f"ask ask {OPEN} 29 fail:2 1 ask fail:1 half_open refused fail open",
        ),
        ("an old call that comes back well closes it", f"ask {OPEN} ok closed ask"),
    ],
)
def test_the_breaker(what: str, script: str) -> None:
    clock = Clock()
    breaker = Breaker(clock)
    calls: list[int] = []
    for step in script.split():
        word, _, number = step.partition(":")
        match word:
            case "ask":
                calls.append(breaker.admit())
                assert calls[-1], what
            case "refused":
                assert not breaker.admit(), what
            case "ok":
                breaker.succeeded()
            case "fail" | "drop":
                report = breaker.failed if word == "fail" else breaker.abandoned
                report(calls[int(number) - 1] if number else calls[-1])
            case "open" | "closed" | "half_open":
                assert breaker.state == word, what
            case seconds:
                clock.now += float(seconds)


def test_how_many_failures_and_how_long_a_rest_can_be_chosen() -> None:
    clock = Clock()
    breaker = Breaker(clock, failures=1, rest_s=2)
    breaker.failed(breaker.admit())
    clock.now += 2
    assert breaker.state == "half_open"
