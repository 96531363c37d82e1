"""The circuit breaker on a clock that the test turns."""

from __future__ import annotations

from trainmedic.kb.breaker import Breaker


class Clock:
    """Seconds, as many as the test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(3):
        breaker.failed(breaker.admit())
    return breaker


def state_of(breaker: Breaker) -> str:
    """Its state, asked anew."""
    return breaker.state


def admitted(breaker: Breaker, times: int) -> list[bool]:
    """Whether so many askers in turn are let through."""
    return [breaker.admit() > 0 for _ in range(times)]


def test_the_third_failure_running_opens_it() -> None:
    breaker = Breaker(Clock())
    breaker.failed(breaker.admit())
    breaker.failed(breaker.admit())
    assert state_of(breaker) == "closed"
    breaker.failed(breaker.admit())
    assert state_of(breaker) == "open"
    assert not breaker.admit()


def test_a_success_between_failures_starts_the_count_again() -> None:
    breaker = Breaker(Clock())
    for _ in range(5):
        breaker.failed(breaker.admit())
        breaker.failed(breaker.admit())
        breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.admit()


def test_it_rests_for_the_time_given_and_not_less() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 29.9
    assert state_of(breaker) == "open"
    clock.now += 0.1
    assert state_of(breaker) == "half_open"


def test_after_the_rest_one_call_may_try_and_no_other() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 30
    assert admitted(breaker, 3) == [True, False, False]


def test_a_trial_that_succeeds_closes_it() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 30
    assert breaker.admit()
    breaker.succeeded()
    assert breaker.state == "closed"
    assert admitted(breaker, 3) == [True, True, True]


def test_a_trial_that_fails_opens_it_for_a_whole_rest_again() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 30
    breaker.failed(breaker.admit())
    assert state_of(breaker) == "open"
    clock.now += 29
    assert not breaker.admit()
    clock.now += 1
    assert breaker.admit()


def test_a_trial_given_up_leaves_the_next_asker_to_try() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 30
    trial = breaker.admit()
    assert trial
    breaker.abandoned(trial)
    assert breaker.state == "half_open"
    assert admitted(breaker, 2) == [True, False]


def test_a_call_given_up_counts_neither_for_nor_against() -> None:
    breaker = Breaker(Clock())
    breaker.failed(breaker.admit())
    breaker.failed(breaker.admit())
    breaker.abandoned(breaker.admit())
    assert state_of(breaker) == "closed"
    breaker.failed(breaker.admit())
    assert state_of(breaker) == "open"


def test_how_many_failures_and_how_long_a_rest_can_be_chosen() -> None:
    clock = Clock()
    breaker = Breaker(clock, failures=1, rest_s=2)
    breaker.failed(breaker.admit())
    assert state_of(breaker) == "open"
    clock.now += 2
    assert state_of(breaker) == "half_open"


def test_a_call_from_before_it_opened_that_is_given_up_leaves_the_trial_alone() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    old = breaker.admit()
    for _ in range(3):
        breaker.failed(breaker.admit())
    clock.now += 30
    assert admitted(breaker, 2) == [True, False]
    breaker.abandoned(old)
    assert not breaker.admit()


def test_a_call_from_before_it_opened_that_fails_ends_no_trial_and_prolongs_no_rest() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    old, older = breaker.admit(), breaker.admit()
    for _ in range(3):
        breaker.failed(breaker.admit())
    clock.now += 29
    breaker.failed(older)
    clock.now += 1
    trial = breaker.admit()
    assert trial
    breaker.failed(old)
    assert state_of(breaker) == "half_open"
    assert not breaker.admit()
    breaker.failed(trial)
    assert state_of(breaker) == "open"


def test_a_call_from_before_it_opened_that_comes_back_well_closes_it() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    old = breaker.admit()
    for _ in range(3):
        breaker.failed(breaker.admit())
    breaker.succeeded()
    assert state_of(breaker) == "closed"
    assert breaker.admit() > old
