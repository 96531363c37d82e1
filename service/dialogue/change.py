"""Parse a change as users word it: ``--zero_stage 2``, ``attn_implementation=eager``, ``trl 0.11``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from trainmedic.kb.engine.values import show
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.catalogue import suggest
from trainmedic.kb.frameworks.profiles import select
from trainmedic.kb.frameworks.settings import HF, Key, Spec, index, specs
from trainmedic.kb.frameworks.values import ATTENTION, DTYPES, Nothing, normalise, truth
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.report import Text
from trainmedic.kb.model.run import RunConfig, Unresolved, Value, VersionFact
from trainmedic.kb.parse.readers.versions import PACKAGES, next_release, package, public

MAX_VALUE = 200
UNSET: Final = "\0unset"
"""The value that removes a setting."""
ALIASES = {
    "lr": "learning_rate",
    "zero": "zero_stage",
    "zero_optimization": "zero_stage",
    "batch_size": "micro_batch",
    "micro_batch_size": "micro_batch",
    "grad_accum": "gradient_accumulation",
    "accumulation_steps": "gradient_accumulation",
    "attn": "attention",
    "grad_clip": "max_grad_norm",
    "clip_grad": "max_grad_norm",
    "lora_r": "lora_rank",
}
"""Short names that people use, beside the canonical ones and the frameworks' own."""
AUTO = "auto"
"""What leaves an option of a DeepSpeed file to the trainer."""
_LEFT_OUT = ("unset", "remove", "removed", "default", "not set", "")
_COLUMNS = (*select("library"), "bnb", *select("trainer"))
_VERSION = regex(r"(?:==|=)?\s*[vV]?(?P<version>[0-9]{1,4}(?:\.[0-9a-zA-Z]{1,8}){1,5}(?:\+[0-9a-zA-Z.]{1,20})?)")
# zero3, ZeRO-3, stage 3, deepspeed-zero-3.
_STAGE = regex(r"(?:deepspeed[-_ ]?)?(?:zero|stage|z)[-_ ]?(?:stage)?[-_ ]?(?P<stage>[0-3])", re.IGNORECASE)
NOT_A_WORD = Text(en="there is no setting or option with this name", zh="没有叫这个名字的设置或选项")
NOT_A_VALUE = Text(en="this is not a valid value", zh="这不是有效的值")
NOT_A_VERSION = Text(en="this is not a version number", zh="这不是版本号")


class InvalidChange(Exception):
    """A change that cannot be applied; ``why`` in both languages."""

    def __init__(self, why: Text) -> None:
        super().__init__(why.en)
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``wording`` is the name as the user wrote it, ``name`` the setting, option or package that it means.

    ``value`` is the normalised value (`UNSET` removes the setting), ``raw`` its text.
    """

    wording: str
    name: str
    raw: str
    value: Value = None
    canonical: bool = False
    package: bool = False
    version: VersionFact | None = None

    @property
    def display(self) -> str:
        """The new value as shown to users."""
        if self.value == UNSET:
            return AUTO if self.raw.lower() == AUTO else "—"
        return show(self.value) if self.canonical else self.raw


def parse_change(wording: str, raw: str, run: RunConfig) -> Change:
    """The meaning of a change for ``run``. Raises `InvalidChange`."""
    name, raw = str(wording).strip().lstrip("-").strip(), str(raw).strip()
    if not name or len(raw) > MAX_VALUE or len(name) > MAX_VALUE or not (name + raw).isprintable():
        raise InvalidChange(NOT_A_WORD if not name else NOT_A_VALUE)
    if package(name) in PACKAGES and (_VERSION.fullmatch(raw) or _known_setting(name, run) is None):
        return _release(wording, package(name), raw)
    known = _known_setting(name, run)
    if known is not None:
        spec, how = known
        return Change(wording=wording, name=spec.name, raw=raw, value=_value(spec, how, raw), canonical=True)
    framework = run.framework.value if run.framework is not None else None
    key = name.replace("-", "_")
    written = _written_as(key, run)
    if written is not None and (known := _known_setting(written, run)) is not None:
        spec, how = known
        return Change(wording=wording, name=spec.name, raw=raw, value=_value(spec, how, raw), canonical=True)
    if written is None and (framework is None or catalogue.exists(framework, key, None) is False):
        raise InvalidChange(_no_such(framework, key))
    if written is None and framework is not None and catalogue.option(framework, key, None) is None:
        raise InvalidChange(_no_such(framework, key))
    return Change(wording=wording, name=written or key, raw=raw, value=UNSET if raw.lower() in _LEFT_OUT else raw)


def _written_as(key: str, run: RunConfig) -> str | None:
    """The option that the user wrote under this name, or with it as the last part of its path."""
    keys = [option.key for option in run.options]
    plain = [written.replace("-", "_") for written in keys]
    if key in plain:
        return keys[plain.index(key)]
    ending = [written for written, name in zip(keys, plain, strict=True) if name.rpartition(".")[2] == key]
    return ending[0] if len(set(ending)) == 1 else None


def setting_called(name: str, run: RunConfig) -> str:
    """The canonical setting, or the package, that a name means; else the name itself."""
    if package(name) in PACKAGES:
        return package(name)
    key = name.strip().lstrip("-")
    known = _known_setting(key, run) or _known_setting(_written_as(key.replace("-", "_"), run) or key, run)
    return known[0].name if known is not None else key


def _release(wording: str, name: str, raw: str) -> Change:
    match = _VERSION.fullmatch(raw)
    if match is None:
        raise InvalidChange(NOT_A_VERSION)
    version = public(match["version"])
    exact = version.count(".") != 1  # "4.44" may be any patch release of it
    fact = VersionFact(
        package=name,
        exact=version if exact else None,
        reason="supposed",
        low=None if exact else version,
        high=None if exact else next_release(version),
    )
    return Change(wording=wording, name=name, raw=version, package=True, version=fact)


def _known_setting(name: str, run: RunConfig) -> tuple[Spec, str] | None:
    """The canonical setting that a name means, and the conversion of its value."""
    key = name.replace("-", "_").lower()
    if key in specs():
        return specs()[key], ""
    framework = run.framework.value if run.framework is not None else None
    algorithm = run.algorithm.value if run.algorithm is not None else None
    columns = dict.fromkeys((*([framework] if framework else []), *(HF if framework in HF else ()), *_COLUMNS))
    for column in columns:
        for spelled in (name, key):
            matches: tuple[tuple[Spec, Key], ...] = index(column).get(spelled, ())
            for spec, option in matches:
                if option.fits(algorithm):
                    return spec, option.how
    return (specs()[ALIASES[key]], "") if key in ALIASES else None


def _value(spec: Spec, how: str, raw: str) -> Value:
    """The normalised value. Raises `InvalidChange` if the setting cannot have it."""
    if raw.lower() in _LEFT_OUT:
        return UNSET
    stage = _STAGE.fullmatch(raw) if spec.name == "zero_stage" else None
    if how in ("flash_switch", "bf16_switch") and not isinstance(truth(raw), bool):
        how = ""  # a switch set by a value name: flash_attn=eager
    value = normalise(spec.kind, how, stage["stage"] if stage else raw)
    if value is None:
        return UNSET
    kinds: dict[str, bool] = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "flag": isinstance(value, bool),
        "dtype": value in DTYPES.values(),
        "attention": value in ATTENTION.values(),
    }
    if isinstance(value, Nothing | Unresolved) or not kinds.get(spec.kind, True):
        if raw.lower() == AUTO:
            return UNSET
        raise InvalidChange(NOT_A_VALUE)
    if spec.name == "zero_stage" and value not in (0, 1, 2, 3):
        raise InvalidChange(NOT_A_VALUE)
    return value


def _no_such(framework: str | None, key: str) -> Text:
    """The "unknown option" message, with a suggestion."""
    meant = suggest(framework, key) if framework is not None else None
    other = getattr(meant, "key", None)
    if not other:
        return NOT_A_WORD
    return Text(en=f"{NOT_A_WORD.en}; did you mean {other}?", zh=f"{NOT_A_WORD.zh}；是否想写 {other}？")
