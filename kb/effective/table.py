"""The configuration in effect, from what was pasted: written options, what follows from them, and defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainmedic.kb.data_files import load_table
from trainmedic.kb.effective.filled import filled
from trainmedic.kb.effective.model import Effective, Kind, Loss, Lost, Outcomes, Row
from trainmedic.kb.effective.written import Written, known_as, place, written
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.values import show
from trainmedic.kb.frameworks.batch import Known, batch
from trainmedic.kb.frameworks.canonical import name_of
from trainmedic.kb.frameworks.defaults import Declared, candidates, declared, fitting
from trainmedic.kb.frameworks.entries import owners as owners_of
from trainmedic.kb.frameworks.profiles import BASE, BESIDE, FOREIGN, HF_TRAINERS, profiles
from trainmedic.kb.frameworks.settings import HF
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import Option, Origin, RunConfig, Setting, Unresolved, Value

Initialise = Callable[[Effective], Outcomes]
"""Outcomes of the classes' own initialisation code, which only their source tells."""
_SIZES = ("world_size", "data_parallel", "accumulation", "global_batch")
_BESIDE = {name: profile.defaults_for for name, profile in profiles().items() if profile.defaults_for}
"""Parts with defaults of their own, and the scope of their options."""
_REFERENCE = regex(r"^\$\{(?:oc\.select:)?([A-Za-z_][\w.]*)(?:,(.*))?\}$")
_WHY = {
    "required": "has no default",
    "computed": "computed when the program runs",
    "differs": "differs between the releases or the commands in question",
}


def effective(evidence: Evidence, run: RunConfig | None = None, initialise: Initialise | None = None) -> Effective:
    """Every option of a run (default: the first one) with its value and origin."""
    run = run or evidence.run
    work = _Work(evidence=evidence, run=run, written=written(Facts(evidence, run)))
    work.add_written()
    work.add_defaults()
    work.resolve()
    made = work.result()
    if initialise is not None:
        work.apply(initialise(made))
    work.add_derived()
    work.drop_unused()
    return work.result()


@dataclass(slots=True, kw_only=True)
class _Work:
    evidence: Evidence
    run: RunConfig
    written: Written
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)

    @property
    def framework(self) -> str:
        return self.run.framework.value if self.run.framework is not None else ""

    @property
    def algorithm(self) -> str | None:
        return self.run.algorithm.value if self.run.algorithm is not None else None

    @property
    def transformers(self) -> str | None:
        fact = self.evidence.versions.get(BASE)
        return fact.exact if fact is not None else None

    @property
    def owners(self) -> tuple[str, ...]:
        programs = [region.entry.value for region in self.run.regions if region.entry is not None]
        scopes = (option.scope for option in self.run.options)
        return owners_of(self.framework, self.algorithm, scopes, programs) if self.framework else ()

    @property
    def releases(self) -> tuple[str, ...]:
        known = known_as(self.framework)
        fact = self.evidence.versions.get(profiles()[known].package if known in profiles() else known)
        return fitting(known, candidates(known, fact), self.run.options)

    def result(self) -> Effective:
        order = {"written": 0, "unknown": 1, "derived": 1, "computed": 2, "default": 3}
        rows = sorted(self.rows.values(), key=lambda row: (row.span is None, row.part, order[row.kind]))
        return Effective(
            framework=self.framework,
            algorithm=self.algorithm or "",
            releases=self.releases,
            transformers=self.transformers or "",
            owners=self.owners,
            partial=self.run.partial,
            rows=tuple(rows),
            lost=tuple(self.written.lost),
        )

    def add_written(self) -> None:
        for (part, name), option in self.written.options.items():
            self._put(_row(part, name, option, self.written.values[part, name], self._setting(name, option.scope)))

    def add_defaults(self) -> None:
        """Defaults of the framework, and of what it hands a configuration of its own to."""
        profile = profiles().get(self.framework)
        if profile is not None and profile.defaults and not self.run.partial:
            known = known_as(self.framework)
            self._defaults("", known, declared(known, self.releases, self.owners, self.transformers))
        for part in sorted({part for part, _ in self.rows} & _BESIDE.keys()):
            fact = self.evidence.versions.get(part)
            self._defaults(part, part, declared(part, candidates(part, fact), (), None))

    def _defaults(self, part: str, framework: str, options: Mapping[str, Declared]) -> None:
        for name, option in options.items():
            setting = name_of(framework, name, _BESIDE.get(part, ""), self.algorithm) or ""
            row = Row(name=name, value=option.value, kind="default", origin=self._release(option), part=part)
            row = replace(row, setting=setting)
            if option.why:
                how = f"{option.computed}: {_WHY[option.why]}" if option.computed else _WHY[option.why]
                row = replace(row, kind="computed" if option.computed else "unknown", origin=f"{how}, {row.origin}")
            if (part, name) not in self.rows:
                self._put(row)

    def _release(self, option: Declared) -> str:
        releases = self.releases if option.framework == known_as(self.framework) else ()
        fact = self.evidence.versions.get(option.framework)
        if not releases and fact is not None and fact.exact:
            releases = (fact.exact,)
        span = "" if not releases else releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
        return f"default of {option.framework} {span}".rstrip()

    def resolve(self) -> None:
        """Defaults that refer to another option have its value."""
        for key, row in list(self.rows.items()):
            seen, current = {key}, row
            while (target := self._referred(current)) is not None and target not in seen:
                seen.add(target)
                current = self.rows[target]
            if current is not row and current.kind in ("written", "default", "derived"):
                kind: Kind = "default" if current.kind == "default" else "derived"
                self.rows[key] = replace(row, value=current.value, kind=kind, origin=f"follows {current.name}")

    def _referred(self, row: Row) -> tuple[str, str] | None:
        text = row.origin.partition(": ")[0] if row.kind == "computed" else row.value
        match = _REFERENCE.match(text) if isinstance(text, str) else None
        return ("", match[1]) if match is not None and ("", match[1]) in self.rows else None

    def apply(self, outcomes: Outcomes) -> None:
        """Take over what the classes make of their fields."""
        for name, (known, value, where) in outcomes.items():
            row = self.rows.get(("", name))
            if row is None or (known and same(row.value, value) and row.kind in ("written", "default")):
                continue
            if known:
                was = f", written at {place(row.span)}" if row.span is not None else ""
                self._put(replace(row, value=value, kind="derived", origin=f"{where}{was}"))
            elif row.kind == "written":
                self._put(replace(row, origin=f"{row.origin}; {where} may change it"))
            else:
                self._put(replace(row, kind="computed", origin=f"computed by {where}; {row.origin}"))

    def add_derived(self) -> None:
        """Sizes of the run, settings that follow from others, and what fills a file beside."""
        sizes = batch(self.run.settings, self.framework, self.algorithm)
        for name in _SIZES:
            number: Known | None = getattr(sizes, name)
            if number is not None:
                self._put(Row(name=name, value=number.value, kind="derived", origin=number.how, setting=name))
        by_setting = {row.setting: key for key, row in self.rows.items() if row.setting and not key[0]}
        for name, setting in self.run.settings.items():
            if _is_derived(setting) and name not in _SIZES:
                key = by_setting.get(name)
                row = self.rows[key] if key is not None else None
                if row is not None and row.kind in ("written", "derived"):
                    continue
                known = row or Row(name=name, value=None, kind="derived", origin="", setting=name)
                self._put(replace(known, value=setting.value, kind="derived", origin=setting.source))
        if self.framework in HF_TRAINERS or self.framework in HF:
            for row, lost in filled(self.rows, self.run, sizes.global_batch, self.transformers):
                self._put(row)
                self.written.lost += [lost] if lost is not None else []

    def drop_unused(self) -> None:
        """Options of TrainingArguments that nothing reads beside others, and what the trainer puts in their place."""
        if self.framework not in HF:
            return
        for each in load_table("effective/unused.toml")["unused"]:
            row, other = self.rows.get(("", each["option"])), self._other(each)
            if row is not None and row.span is not None and other is not None:
                del self.rows["", row.name]
                self._lose(row, "unused", other)
        precision = next(
            (row for name in ("fp16", "bf16") if (row := self._known("", name)) and row.value is True), None
        )
        for part in FOREIGN:
            mixed = self.rows.get((part, "mixed_precision"))
            if precision is not None and mixed is not None and mixed.value != precision.name:
                del self.rows[part, "mixed_precision"]
                self._lose(mixed, "replaced", precision)

    def _other(self, each: Mapping[str, Any]) -> Row | None:
        """The row that takes the effect of an option away, if it does."""
        if "beside" in each:
            return next((row for part in BESIDE if (row := self.rows.get((part, each["beside"])))), None)
        other = self._known("", each["when"])
        if other is None:
            return None
        unless = each.get("unless")
        decides = is_above_zero(other.value) if unless is None else _is_other_word(other.value, unless)
        return other if decides else None

    def _known(self, part: str, name: str) -> Row | None:
        row = self.rows.get((part, name))
        return row if row is not None and row.kind in ("written", "derived", "default") else None

    def _lose(self, row: Row, kind: Loss, other: Row) -> None:
        assert row.span is not None, "only what was written is lost"
        reason = f"{other.name} is {show(other.value)} ({other.origin})"
        self.written.lost.append(
            Lost(name=row.name, value=row.value, kind=kind, reason=reason, span=row.span, part=row.part)
        )

    def _setting(self, name: str, scope: str) -> str:
        return name_of(known_as(self.framework) or None, name, scope, self.algorithm) or ""

    def _put(self, row: Row) -> None:
        self.rows[row.part, row.name] = row


def same(left: object, right: object) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def is_above_zero(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_other_word(value: Value, word: str) -> bool:
    return isinstance(value, str) and value.lower() != word


def _row(part: str, name: str, option: Option, value: Value, setting: str) -> Row:
    unresolved = isinstance(value, Unresolved)
    origin = f"{_ORIGINS.get(option.origin, 'written')}: {place(option.span)}"
    return Row(
        name=name,
        value=value,
        kind="unknown" if unresolved else "written",
        origin=f"{origin}, a variable that is not given" if unresolved else origin,
        part=part,
        setting=setting,
        span=option.span,
    )


_ORIGINS = {Origin.FLAG: "command", Origin.HYDRA: "command", Origin.ENV: "environment", Origin.DUMP: "printed"}


def _is_derived(setting: Setting) -> bool:
    return not setting.source.startswith(("default of", "written:"))


def rows_of(found: Effective, *, everything: bool) -> Iterator[Row]:
    """The rows that matter: what was written or follows, and the defaults of canonical settings."""
    for row in found.rows:
        plain = row.kind in ("default", "unknown", "computed") and row.span is None
        if everything or not plain or (row.setting and not row.part):
            yield row
