"""Which framework the names of options say: names that only one has, else the catalogue that knows most of them."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.frameworks.profiles import profiles, select
from trainmedic.kb.frameworks.tables import table
from trainmedic.kb.model.run import Option, Recognised


def from_keys(options: Sequence[Option]) -> Recognised | None:
    """The framework that option names or values say, or None; those only printed about it do not count."""
    plain = [option for option in options if option.scope in ("", "deepspeed", "accelerate")]
    for framework, profile in profiles().items():
        signature = profile.signature
        for option in plain:
            if option.key in signature or option.key.startswith(tuple(s for s in signature if s.endswith("."))):
                if option.scope and framework != option.scope:
                    continue
                if framework in ("deepspeed", "accelerate") and _others(plain, framework):
                    continue
                rivals = _rivals(framework, plain)
                if not rivals:
                    return Recognised(
                        value=framework, reason=f"{option.key} is an option of {framework}", span=option.span
                    )
    return _by_score([option for option in plain if not option.scope])


def _others(plain: Sequence[Option], framework: str) -> bool:
    """Whether the paste holds more than this launcher or engine file: then it does not name the framework."""
    return any(option.scope != framework and option.key.split(".")[0] not in _heads(framework) for option in plain)


def _heads(framework: str) -> frozenset[str]:
    found = table(framework)
    names = found.names if found else ()
    extra = {"optimizer", "scheduler", "fp16", "bf16", "bfloat16", "wall_clock_breakdown", "steps_per_print", "debug"}
    return frozenset({name.split(".")[0] for name in names} | extra)


def _rivals(framework: str, plain: Sequence[Option]) -> bool:
    """Whether another framework knows clearly more of these options."""
    scores = _scores([option for option in plain if not option.scope])
    mine = scores.get(framework, 0.0)
    return any(score > mine + 1 for name, score in scores.items() if name != framework)


def _scores(options: Sequence[Option]) -> dict[str, float]:
    names = [name for name in select("trainer") if table(name) is not None]
    hf = table("transformers")
    scores = dict.fromkeys(names, 0.0)
    for option in options:
        key = option.key.replace("-", "_")
        holders = [name for name in names if knows(name, option.key, key)]
        if hf is not None and key in hf.names:
            continue
        for name in holders:
            scores[name] += 1 / len(holders)
    return scores


def knows(name: str, written: str, underscored: str) -> bool:
    """Whether a framework's catalogue has the name, in either spelling."""
    found = table(name)
    if found is None:
        return False
    return written in found.names or (not profiles()[name].exact_names and underscored in found.names)


def _by_score(options: Sequence[Option]) -> Recognised | None:
    if not options:
        return None
    scores = sorted(((score, name) for name, score in _scores(options).items()), reverse=True)
    (best, name), (second, _) = scores[0], scores[1]
    if best < 1.0 or best < 1.5 * second:
        return None
    known = next(option for option in options if knows(name, option.key, option.key.replace("-", "_")))
    return Recognised(value=name, reason=f"the options are those of {name}", span=known.span)
