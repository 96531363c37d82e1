"""Import a configuration of a release for real and print what it holds, as JSON. Run by `benchmarks.effective` only.

    python benchmarks/effective_probe.py '{"asked": [{"kind": "class", "module": …, "name": …}]}'

Uses nothing of trainmedic. Modules named in ``stubs`` are stand-ins; those in ``bare`` are packages whose ``__init__``
does not run; ``versions`` are what unpacked packages answer for their version.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import runpy
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

REQUIRED = "<required>"


class Anything(type):
    """A class whose members are stand-ins as well."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if len(given) == 1 and not named and (isinstance(given[0], (type, types.FunctionType))):
            return given[0]  # a decorator
        return super().__call__()

    def __getitem__(cls, item: object) -> Any:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls

    __ror__ = __or__

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __len__(cls) -> int:
        return 0


class Stub(metaclass=Anything):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub

    def __call__(self, *given: Any, **named: Any) -> Any:
        return given[0] if len(given) == 1 and isinstance(given[0], (type, types.FunctionType)) else Stub()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> dict[str, str]:
        return {"type": "any"}


class StubModule(types.ModuleType):
    __version__ = "9.9.9"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = set(names)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if not any(name == each or name.startswith(f"{each}.") for each in self.names):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        module = StubModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        return None


def prepare(asked: Mapping[str, Any]) -> None:
    sys.meta_path.insert(0, Stubs(asked.get("stubs", ())))
    known, real = asked.get("versions", {}), importlib.metadata.version

    def version(distribution_name: str) -> str:
        return str(known.get(distribution_name.replace("_", "-").lower()) or real(distribution_name))

    importlib.metadata.version = version
    checks = types.ModuleType("transformers.dependency_versions_check")
    checks.dep_version_check = lambda *_: None  # type: ignore[attr-defined]
    sys.modules[checks.__name__] = checks
    for name in asked.get("bare", ()):
        module = types.ModuleType(name)
        module.__path__ = [f"{folder}/{name.replace('.', '/')}" for folder in sys.path]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module


def plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return {"$repr": type(value).__name__}


def first_of(modules: Sequence[str]) -> types.ModuleType:
    """The first of these modules that this release has."""
    for name in modules[:-1]:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not error.name or not (name == error.name or name.startswith(f"{error.name}.")):
                raise
    return importlib.import_module(modules[-1])


def of_class(asked: Mapping[str, Any]) -> dict[str, Any]:
    module = first_of(asked["module"].split("|"))
    found = next(getattr(module, name) for name in asked["name"].split("|") if hasattr(module, name))
    if hasattr(found, "model_fields") or hasattr(found, "__fields__"):
        return {"defaults": dict(of_model(found))}
    defaults = {}
    for each in dataclasses.fields(found):
        if each.default is not dataclasses.MISSING:
            defaults[each.name] = plain(each.default)
        elif each.default_factory is not dataclasses.MISSING:
            defaults[each.name] = plain(each.default_factory())
        else:
            defaults[each.name] = REQUIRED
    answer: dict[str, Any] = {"defaults": defaults}
    for given in asked.get("given", ()):
        try:
            made = found(**given)
        except Exception as error:
            answer["refused"] = f"{type(error).__name__}: {error}"[:300]
        else:
            names = [each.name for each in dataclasses.fields(found)]
            return {**answer, "given": given, "made": {name: plain(getattr(made, name, None)) for name in names}}
    return answer


def of_model(found: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(found, "model_fields"):  # of pydantic 1
        for name, each in found.__fields__.items():
            yield each.alias or name, REQUIRED if each.required else plain(each.get_default())
        return
    for name, each in found.model_fields.items():
        value = REQUIRED if each.is_required() else plain(each.get_default(call_default_factory=True))
        yield each.alias or name, value
        if found.model_config.get("populate_by_name"):
            yield name, value


def of_parser(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a program's parser has as defaults, seen where it parses."""

    class Seen(Exception):
        pass

    def parse(self: argparse.ArgumentParser, *_: Any, **__: Any) -> Any:
        raise Seen(self)

    argparse.ArgumentParser.parse_args = parse  # type: ignore[method-assign]
    argparse.ArgumentParser.parse_known_args = parse  # type: ignore[method-assign]
    try:
        if "function" in asked:
            parser = getattr(importlib.import_module(asked["module"]), asked["function"])()
        else:
            runpy.run_module(asked["module"], run_name="__main__")
            raise SystemExit("nothing was parsed")
    except Seen as seen:
        parser = seen.args[0]
    defaults = {}
    for action in parser._actions:
        names = [option[2:] for option in action.option_strings if option.startswith("--")]
        if names and action.dest != "help":
            defaults[names[0]] = REQUIRED if action.required else plain(action.default)
    return {"defaults": defaults}


def of_hydra(asked: Mapping[str, Any]) -> dict[str, Any]:
    hydra, omegaconf = importlib.import_module("hydra"), importlib.import_module("omegaconf")
    folder = next(f"{path}/{asked['folder']}" for path in sys.path if os.path.isdir(f"{path}/{asked['folder']}"))
    with hydra.initialize_config_dir(folder, version_base=None):
        tree = omegaconf.OmegaConf.to_container(hydra.compose(asked["name"]), resolve=False)
    leaves: dict[str, Any] = {}

    def flatten(node: Any, prefix: str) -> None:
        if isinstance(node, Mapping) and node:
            for key, value in node.items():
                flatten(value, f"{prefix}.{key}" if prefix else str(key))
        else:
            leaves[prefix] = plain(node)

    flatten(tree, "")
    return {"defaults": leaves}


def main() -> None:
    """One answer for each thing that is asked for; one that cannot be imported is its reason, as text."""
    asked = json.loads(sys.argv[1])
    prepare(asked)
    answers = {"class": of_class, "parser": of_parser, "hydra": of_hydra}
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what the package prints is no answer
        found: list[Any] = []
        for each in asked["asked"]:
            try:
                found.append(answers[each["kind"]](each))
            except (Exception, SystemExit) as error:
                found.append(f"{type(error).__name__}: {error}"[:200])
        json.dump(found, out)


if __name__ == "__main__":
    main()
