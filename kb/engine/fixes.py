"""Fixes: from what a page says to edits of the user's own text, in the framework's own spelling. Writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from trainmedic.kb.engine.edits import Document, insert, remove, rename, replace_option, replace_value, resolve
from trainmedic.kb.engine.expressions import Expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.rule import FixSpec
from trainmedic.kb.engine.values import is_number, show, truth
from trainmedic.kb.frameworks.canonical import Spelling, keys_of, name_of, spelling
from trainmedic.kb.frameworks.catalogue import infer_versions, versions
from trainmedic.kb.frameworks.entries import is_class
from trainmedic.kb.frameworks.profiles import FOREIGN, select
from trainmedic.kb.frameworks.spelling import column_of
from trainmedic.kb.model.place import Source
from trainmedic.kb.model.report import Edit, Fix, Safety, Text
from trainmedic.kb.model.run import CAST, Option, Origin, Scalar

_HOLDERS = (Origin.FLAG, Origin.HYDRA, Origin.YAML, Origin.JSON, Origin.PYTHON, Origin.TOML, Origin.INI)
_LIBRARIES = select("library")
_FOREIGN_CLASSES = ("LoraConfig", "PeftConfig", "BitsAndBytesConfig", "GenerationConfig", "get_peft_model")


def fixes(specs: Iterable[FixSpec], facts: Facts, values: Mapping[str, str] | None = None) -> tuple[Fix, ...]:
    """The fixes that a page offers here, with their edits (none where the fix can only be described)."""
    offers = []
    for spec in specs:
        if spec.when is not None and truth(spec.when.evaluate(facts)) is not True:
            continue
        plan = _Plan(facts)
        for name in spec.unset:
            plan.unset(name)
        for name, value in spec.set.items():
            if not isinstance(value, Expression):
                plan.set(name, value)
            elif is_number(number := value.evaluate(facts)):
                plan.set(name, number)
            else:
                plan.refuse(name)
        for option, name in spec.rename:
            plan.rename(option, name)
        edits = plan.edits() if spec.safety is not Safety.DISPLAY else ()
        text = spec.text.render(facts, values) if spec.text is not None else _described(spec, plan)
        fix = Fix(text=text, safety=spec.safety, edits=edits, alternative=spec.alternative, repairs=spec.repairs)
        offers.append((spec, fix))
    needed = [offer for offer in offers if not _is_installed(offer[0], facts)] or offers
    return tuple(_in_turn(offers, needed))


def _in_turn(offers: Sequence[tuple[FixSpec, Fix]], needed: Sequence[tuple[FixSpec, Fix]]) -> Iterator[Fix]:
    """What is needed; the first is not an alternative, and what follows an alternative that is left out is one."""
    first, alternative = True, False
    for offer in offers:
        alternative = alternative or offer[1].alternative
        if offer in needed:
            yield replace(offer[1], alternative=alternative and not first)
            first, alternative = False, False


def _is_installed(spec: FixSpec, facts: Facts) -> bool:
    """Whether the fix is to install a release, and one of them is installed."""
    if spec.upgrade is None or spec.set or spec.unset or spec.text is not None:
        return False
    package = re.split(r"[<>=!~]", spec.upgrade, maxsplit=1)[0]
    return facts.fact(("version", package, spec.upgrade[len(package) :])).value is True


def _described(spec: FixSpec, plan: _Plan) -> Text:
    en = [f"Remove `{key}`." for key in plan.removed] + _listed("Set {}.", plan.written, ", ", " and ")
    zh = [f"去掉 `{key}`。" for key in plan.removed] + _listed("设置 {}。", plan.written, "、", "、")
    en += [f"Write `{new}` for `{old}`." for old, new in plan.renamed.items()]
    zh += [f"把 `{old}` 改名为 `{new}`。" for old, new in plan.renamed.items()]
    if spec.upgrade:
        en.append(f"Install `{spec.upgrade}`.")
        zh.append(f"安装 `{spec.upgrade}`。")
    return Text(en=" ".join(en), zh="".join(zh))


def _listed(sentence: str, keys: Sequence[str], between: str, last: str) -> list[str]:
    names = [f"`{key}`" for key in keys]
    return [sentence.format(last.join(filter(None, (between.join(names[:-1]), names[-1]))))] if names else []


class _Plan:
    """The edits of one fix on one run. One thing that cannot be done makes the whole fix a description."""

    def __init__(self, facts: Facts) -> None:
        run = facts.run
        self.facts, self.run = facts, run
        self.documents: dict[str | None, Document] = {}
        self.framework = run.framework.value if run.framework is not None else None
        self.algorithm = run.algorithm.value if run.algorithm is not None else None
        self.version = _release(facts, self.framework)
        stated = facts.evidence.versions.get(self.framework or "")
        self.certain = stated is not None and stated.exact is not None
        self.taken: list[Option] = []
        self.changes: list[Edit] = []
        self.possible = True
        self.removed: list[str] = []
        self.written: list[str] = []
        self.renamed: dict[str, str] = {}

    def unset(self, name: str) -> None:
        """Remove a canonical setting, or an option by its own name."""
        setting = self.run.settings.get(name)
        key = setting.option.key if setting is not None and setting.option is not None else name
        options = self.facts.options(key)
        self.removed.append(_as_written(options[-1]) if options else key)
        self.possible = self.possible and bool(options)
        self._take(options)

    def set(self, name: str, value: Scalar) -> None:
        """Write a canonical setting in the framework's spelling: in its place, or behind the run's last option."""
        option = self._option_of(name)
        holder = option or self._holder(name)
        spelled = self._spelled(name, value, option, holder)
        if spelled is None:
            self.written.append(f"{name}: {show(value)}")
            self.possible = False
            return
        drops = [dropped for key in spelled.drop for dropped in self.facts.options(key) if dropped != option]
        if spelled.key is not None:
            self._take(drops)
            self._write(option, holder, spelled.key, spelled.raw)
            return
        drops += [option] if option is not None else []  # leaving it out says the value
        self.removed += [_as_written(dropped) for dropped in drops] or [f"{name}: {show(value)}"]
        self._take(drops)

    def refuse(self, name: str) -> None:
        """A value that cannot be worked out."""
        self.written.append(name)
        self.possible = False

    def rename(self, option: Option, name: str) -> None:
        """Give an option another name and leave its value."""
        self.renamed[_as_written(option)] = f"--{name}" if option.origin is Origin.FLAG else name
        self._change(rename(self._document(option.span.attachment), option, name))

    def _write(self, option: Option | None, holder: Option | None, key: str, raw: str | None) -> None:
        """Write ``key`` over ``option``; without one behind ``holder``, and without that nowhere."""
        if holder is None:
            self.written.append(_shown(Origin.FLAG, key, raw))
            self._change(None)
            return
        self.written.append(f".to({raw})" if holder.scope == CAST else _shown(holder.origin, key, raw))
        document = self._document(holder.span.attachment)
        if option is None:
            self._change(insert(document, holder, key, raw))
        elif option.key.replace("-", "_") == key.replace("-", "_"):
            self._change(replace_value(document, option, raw))
        else:
            self._change(replace_option(document, option, key, raw))

    def _change(self, edit: Edit | None) -> None:
        if edit is None:
            self.possible = False
        else:
            self.changes.append(edit)

    def _spelled(self, name: str, value: Scalar, option: Option | None, holder: Option | None) -> Spelling | None:
        """How to write it: in the words of the call it stands in, else of the library or the framework it is for.

        The user's own key is kept unless it is known that the release in use lacks it.
        """
        if self.framework is None:
            return None
        origin = holder.origin if holder is not None else Origin.FLAG
        scope = holder.scope if holder is not None else ""
        prefer = option.key if option is not None else None
        if prefer is not None and not column_of(scope) and prefer not in keys_of(self.framework, name):
            for library in _LIBRARIES:
                if prefer in keys_of(library, name):
                    return spelling(library, name, value, None, origin, prefer=prefer)
        usual = spelling(
            self.framework, name, value, self.version, origin, algorithm=self.algorithm, prefer=prefer, scope=scope
        )
        if prefer is None or self.certain or (usual is not None and usual.key == prefer):
            return usual
        preferred = spelling(
            self.framework, name, value, None, origin, algorithm=self.algorithm, prefer=prefer, scope=scope
        )
        return preferred if preferred is not None and preferred.key == prefer else usual

    def edits(self) -> tuple[Edit, ...]:
        """All edits in order of place, or none if one of them cannot be made or two of them meet."""
        gathered, possible = list(self.changes), self.possible
        for name in dict.fromkeys(option.span.attachment for option in self.taken):
            removals = remove(self._document(name), [option for option in self.taken if option.span.attachment == name])
            gathered += removals or ()
            possible = possible and removals is not None
        edits, dropped = resolve(gathered)
        return edits if possible and not dropped else ()

    def _take(self, options: Iterable[Option]) -> None:
        self.taken += [option for option in options if option not in self.taken]

    def _document(self, name: str | None) -> Document:
        if name not in self.documents:
            source = next((item for item in self.facts.evidence.sources if item.name == name), None)
            self.documents[name] = Document(source or Source(name=name, text="", byte_count=0))
        return self.documents[name]

    def _option_of(self, name: str) -> Option | None:
        """The option that spells the setting; not one that it merely follows from."""
        setting = self.run.settings.get(name)
        option = setting.option if setting is not None else None
        if option is None or option not in self.run.options:
            return None
        spellings = (option.key, option.key.replace("-", "_"))  # argparse takes --learning-rate as well
        names = [name_of(self.framework, key, option.scope, self.algorithm) for key in spellings]
        return option if name in names else None

    def _holder(self, name: str) -> Option | None:
        """The last option of the call that the setting belongs into (`LoraConfig`), else of the command, file or call
        that holds the program's own options."""
        called = [
            option
            for option in self.run.options
            if option.origin is Origin.PYTHON
            and option.scope != CAST
            and name != "model"
            and keys_of(column_of(option.scope), name)
        ]
        if called:
            return called[0] if column_of(called[0].scope) == "model" else called[-1]
        options = [
            option
            for option in self.run.options
            if option.origin in _HOLDERS
            and option.scope not in (*FOREIGN, CAST)
            and option.scope not in _FOREIGN_CLASSES
            and not option.scope.endswith("from_pretrained")
            and (option.origin not in (Origin.YAML, Origin.JSON) or "." not in option.key)
        ]
        if not options:
            return None
        options = [option for option in options if self.framework and is_class(self.framework, option.scope)] or options
        places: dict[tuple[str | None, Origin, str], list[Option]] = {}
        for option in options:
            places.setdefault((option.span.attachment, option.origin, option.scope), []).append(option)
        most = max(places.values(), key=lambda group: len(group))
        return max(most, key=lambda option: option.span.order)


def _release(facts: Facts, framework: str | None) -> str | None:
    """The release whose spelling is used: the exact one, else the newest that the paste leaves possible."""
    if framework is None:
        return None
    known = facts.evidence.versions.get(framework)
    if known is not None and (known.exact or known.high or known.low):
        return known.exact or known.high or known.low
    keys = [option.key for option in facts.run.options if option.scope not in FOREIGN]
    low, high, _ = infer_versions(framework, keys)
    newest = versions(framework)[-1:]
    return high or low or (newest[0] if newest else None)


def _as_written(option: Option) -> str:
    return f"--{option.key}" if option.origin is Origin.FLAG else option.key


def _shown(origin: Origin, key: str, raw: str | None) -> str:
    if origin is Origin.FLAG:
        return f"--{key}" if raw is None else f"--{key} {raw}"
    return f"{key}: {raw}" if origin in (Origin.YAML, Origin.JSON) else f"{key}={raw}"
