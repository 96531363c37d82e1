"""What reviewers would otherwise repeat: import direction, sizes, purity, names."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.every_case import every_case
from trainmedic.kb.frameworks.profiles import profiles

ROOT = Path(__file__).parent.parent
PACKAGES = ("kb", "service", "ingest", "ui")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MAY_IMPORT = {
    "kb": {"kb"},
    "ingest": {"ingest", "kb"},
    "service": {"service", "kb"},
    "ui": {"ui", "service", "kb", "ingest"},
}
NEXT_DOOR = (
    *(f"ui.{name}" for name in ("channels", "chat", "evaluation", "mcp", "openai", "vllm", "watch")),
    "ingest.sources.",  # behind its registry
)
"""What is behind entry points. All else is the core."""
MAX_LINES = 600
MAX_FUNCTION = 60
MAX_SERVICE_ROOMS = 15
"""Files and folders directly below service/."""
CHANNELS = tuple(f"ui/{name}/__init__.py" for name in ("chat", "mcp", "openai"))
PLATFORMS = tuple(f"ui/channels/{name}/__init__.py" for name in ("dingtalk", "feishu", "slack"))
COMMANDS = tuple(f"ui/{name}/command.py" for name in ("channels/slack", "evaluation", "mcp", "vllm", "watch"))
LAZY = (
    "ui/cli/",
    "ui/app.py",
    "ui/doctor/start.py",
    "ui/releases.py",
    "ui/watch/callback.py",
    *CHANNELS,
    *PLATFORMS,
    *COMMANDS,
)
"""Entry points, which may import our own modules inside functions: start-up time matters there."""
DATA_TABLES = (
    "kb/checks/environment_variable_misspelt.py",
    "kb/checks/fsdp_layer_class_of_other_family.py",
    "kb/checks/option_offences.py",
    "kb/checks/trl_option_given_to_trainer.py",
)
"""Modules of data tables, which may skip the formatter."""
PURE = (
    "kb/model",
    "kb/parse",
    "kb/mask.py",
    "kb/audit",
    "kb/comparison",
    "kb/engine/expressions.py",
    "kb/engine/checker.py",
    "kb/engine/facts.py",
    "kb/engine/fixes.py",
    "kb/engine/edits.py",
    "kb/engine/patches.py",
    "kb/engine/prefilter.py",
    "kb/language.py",
    "kb/negation.py",
    "kb/sentences.py",
    "kb/sources/selection.py",
    "kb/sources/tree.py",
    "service/answer/audit.py",
    "service/answer/text.py",
    "service/answer/citations.py",
    "service/answer/checkup.py",
    "service/answer/layout.py",
    "service/answer/passages.py",
    "service/answer/differential.py",
    "service/answer/assemble.py",
    "service/dialogue/",
    "service/ranking/candidates.py",
    "service/ranking/diagnose.py",
    "service/ranking/defects.py",
    "service/ranking/features.py",
    "service/ranking/follow_up.py",
    "service/answer/series.py",
    "service/answer/diagnosed.py",
    "service/diagnosis/brief.py",
    "service/diagnosis/form.py",
    "service/diagnosis/names.py",
    "service/diagnosis/prompt.py",
    "service/diagnosis/proof.py",
    "service/answer/views.py",
)
IMPURE_IMPORTS = {"os", "pathlib", "time", "datetime", "random", "socket", "subprocess", "requests", "httpx", "urllib"}
PICKLES = ("kb/pages/compiled.py", "kb/confined.py")
"""The first keeps them beside the compiled modules of the package, as trusted as these; the second sends them to
processes that are trusted less than their sender, and reads none of theirs."""
UNPICKLING = {"pickle", "pebble", "shelve", "dill", "joblib", "marshal"}
UNPICKLING_CALLS = {"Pool", "ProcessPoolExecutor", "Manager", "recv"}
"""What makes objects of whatever another process or a file says."""
READS_ENVIRONMENT = {
    "ingest/sources/github.py",
    "kb/data_files.py",
    # What pip reads there.
    "kb/sources/pip_configuration.py",
    "service/configuration.py",
    "ui/chat/uploads.py",
    "ui/cli/__init__.py",
    "ui/doctor/start.py",
    "ui/cli/_input.py",
    "ui/plain_settings.py",
    "ui/releases.py",
    "ui/tracing.py",
    "ui/watch/launch.py",
    "kb/store/embedder.py",
}
NAMES_FRAMEWORKS = {
    **dict.fromkeys(
        ("kb/memory/plan.py", "service/llm/endpoint.py", "ui/vllm/command.py", "ui/watch/trainer_run.py"), 1
    )
}
"""Modules in which a string is a framework's name, and how often: a setting, a server, an argument of a Trainer."""
MENTIONS_FRAMEWORKS = {"kb": 43, "service": 6, "ingest": 0, "ui": 28}
"""How often the strings of a package have a framework's name, module or command in them. It may only shrink."""
PLAIN_WORDS = {"roll", "slime", "tune"}
"""Names of frameworks and commands that are words of English as well."""
READS_ITSELF = (
    "ingest/",
    "service/dialogue/read",
    "ui/app.py",
    "ui/auditing.py",
    "ui/chat/uploads.py",
    "ui/checking.py",
    "ui/cli/",
    "ui/watch/",
)
"""The composition root, the reading processes, and what its user runs on files of his own; all others are handed a
reader, which is bounded in a service."""
BANNED_STEMS = {"utils", "helpers", "common", "misc", "manager", "base"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, node.lineno


def imported_modules(path: Path) -> Iterator[str]:
    """Our own modules that a module imports, also inside functions and for type checking only."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in OUR_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in OUR_MODULES:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in OUR_MODULES else node.module


def dotted(path: Path) -> str:
    """``trainmedic.kb.parse`` for its ``__init__.py``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("trainmedic", *(parts[:-1] if parts[-1] == "__init__" else parts)))


OUR_MODULES = {dotted(path): path for path in MODULES}


def room_of(module: str) -> str:
    """``service.ranking`` for a module in it or below, ``service.advisor`` for a module of its own."""
    return ".".join(module.split(".")[1:3])


def cycle_in(edges: Iterable[tuple[str, str]]) -> list[str]:
    """One circle of arrows; empty if there is none."""
    graph: dict[str, set[str]] = {}
    for source, target in edges:
        graph.setdefault(source, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


@cache
def all_imports() -> frozenset[tuple[str, str]]:
    """Which of our modules imports which."""
    return frozenset(
        (name, target) for name, path in OUR_MODULES.items() for target in imported_modules(path) if target != name
    )


def package_of(module: str) -> str:
    """``kb`` for ``trainmedic.kb.mask``; empty for anything that is not ours."""
    top, _, rest = module.partition(".")
    return rest.split(".")[0] if top == "trainmedic" else ""


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(syntax(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_packages_import_only_in_their_direction() -> None:
    wrong = [
        f"{name_of(path)}:{line} imports {name}"
        for path in MODULES
        for name, line in imports(syntax(path))
        if (package_of(name) and package_of(name) not in MAY_IMPORT[name_of(path).split("/")[0]])
        or name.split(".")[0] in PACKAGES
    ]
    assert wrong == []


def next_door(module: str) -> str:
    """The room behind an entry point that a module belongs to; empty for the core."""
    # The pages are one room in three folders.
    module = re.sub(r"^trainmedic\.ui\.(?:knowledge|review)\b", "trainmedic.ui.chat", module)
    rooms = (f"trainmedic.{room}" for room in NEXT_DOOR)
    return next((room for room in rooms if module == room or module.startswith(f"{room.rstrip('.')}.")), "")


def test_the_core_and_the_rooms_next_door_import_no_room_next_door() -> None:
    wrong = [edge for edge in sorted(all_imports()) if next_door(edge[1]) not in ("", next_door(edge[0]))]
    assert wrong == []


def test_every_entry_point_is_next_door() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    named = {value.partition(":")[0] for points in project["entry-points"].values() for value in points.values()}
    assert [name for name in sorted(named) if not next_door(name)] == []


@every_case("room", ["chat", "channels"])
def test_what_anybody_may_send_is_read_within_bounds(room: str) -> None:
    inside = f"trainmedic.ui.{room}"
    parsers = {source for source, target in all_imports() if target == "trainmedic.kb.parse.pipeline"}
    assert {name for name in parsers if name.startswith(inside)} == set()


@every_case("package", PACKAGES)
def test_no_module_imports_itself_through_others(package: str) -> None:
    inside = f"trainmedic.{package}"
    assert cycle_in(edge for edge in sorted(all_imports()) if all(name.startswith(inside) for name in edge)) == []


def test_the_rooms_of_the_service_form_no_circle_and_stay_few() -> None:
    between = {(room_of(source), room_of(target)) for source, target in all_imports() if source.count(".") > 1}
    service = [edge for edge in sorted(between) if all(room.startswith("service.") for room in edge)]
    assert cycle_in(edge for edge in service if edge[0] != edge[1]) == []
    rooms = {path.relative_to(ROOT / "service").parts[0] for path in MODULES if name_of(path).startswith("service/")}
    assert len(rooms - {"__init__.py"}) <= MAX_SERVICE_ROOMS


def test_understanding_a_question_needs_no_other_room_of_the_service() -> None:
    rooms = {room_of(target) for source, target in all_imports() if room_of(source) == "service.dialogue"}
    assert {room for room in rooms if room.startswith("service.")} == {"service.dialogue"}


def test_own_modules_are_imported_at_the_top() -> None:
    hidden = {
        f"{name_of(path)}:{line} imports {name}"
        for path in MODULES
        if not name_of(path).startswith(LAZY)
        for function in functions_of(path)
        for name, line in imports(function)
        if package_of(name)
    }
    assert hidden == set()


def test_only_data_tables_skip_the_formatter() -> None:
    skipping = [name_of(path) for path in MODULES if re.search(r"#\s*fmt: (?:skip|off)", text_of(path))]
    assert [name for name in skipping if not name.startswith(DATA_TABLES)] == []


def test_modules_and_functions_stay_small() -> None:
    assert [name_of(path) for path in MODULES if text_of(path).count("\n") > MAX_LINES] == []
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in functions_of(path)
        if (node.end_lineno or node.lineno) - node.lineno > MAX_FUNCTION
    ]
    assert long == []


def test_the_core_touches_no_disk_clock_network_or_environment() -> None:
    wrong = []
    for path in MODULES:
        if name_of(path).startswith(PURE):
            wrong += [
                f"{name_of(path)}: {name}" for name, _ in imports(syntax(path)) if name.split(".")[0] in IMPURE_IMPORTS
            ]
            calls = (node for node in ast.walk(syntax(path)) if isinstance(node, ast.Call))
            wrong += [f"{name_of(path)}:{call.lineno}" for call in calls if getattr(call.func, "id", "") == "open"]
    assert wrong == []


def test_the_environment_is_read_in_few_places() -> None:
    reading = {
        name_of(path)
        for path in MODULES
        if "os.environ" in text_of(path) or "getenv" in text_of(path)
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute)
        and node.attr in ("environ", "getenv")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    }
    assert reading <= READS_ENVIRONMENT


def test_only_whoever_composes_chooses_what_reads() -> None:
    others = [path for path in MODULES if not name_of(path).startswith(("kb/", *READS_ITSELF))]
    reading = [
        name_of(path)
        for path in others
        if "trainmedic.kb.parse.pipeline" in {name for name, _ in imports(syntax(path))}
    ]
    assert reading == []


def test_nothing_pasted_can_be_executed() -> None:
    wrong = []
    for path in MODULES:
        calls = [node.func for node in ast.walk(syntax(path)) if isinstance(node, ast.Call)]
        named = {getattr(call, "id", "") for call in calls} & {"eval", "exec"}
        named |= {getattr(call, "attr", "") for call in calls} & {"unsafe_load", "full_load"}
        if name_of(path) not in PICKLES:
            named |= UNPICKLING_CALLS & {getattr(call, "attr", getattr(call, "id", "")) for call in calls}
            named |= UNPICKLING & {name.split(".")[0] for name, _ in imports(syntax(path))}
        wrong += [f"{name_of(path)}: {name}" for name in sorted(named)]
    assert wrong == []


def test_modules_have_a_docstring_and_a_telling_name() -> None:
    assert [name_of(path) for path in MODULES if not ast.get_docstring(syntax(path))] == []
    assert [name_of(path) for path in MODULES if path.stem in BANNED_STEMS] == []


def strings(path: Path) -> Iterator[str]:
    """The strings of a module but for docstrings."""
    nodes = list(ast.walk(syntax(path)))
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def test_what_a_framework_does_is_in_its_profile_and_not_in_code() -> None:
    """Adding a framework must be adding a folder."""
    modules = [path for path in MODULES if not name_of(path).startswith("kb/frameworks/")]
    named = {name_of(path): sum(text in profiles().keys() - PLAIN_WORDS for text in strings(path)) for path in modules}
    assert {name: n for name, n in named.items() if n > NAMES_FRAMEWORKS.get(name, 0)} == {}
    words = {word for each in profiles().values() for word in (each.name, *each.modules, *each.commands.names)}
    mention = re.compile(
        rf"(?<![a-z0-9])(?:{'|'.join(map(re.escape, words - PLAIN_WORDS))})(?![a-z0-9])", re.IGNORECASE
    )
    found = [name_of(path).split("/")[0] for path in modules for text in strings(path) if mention.search(text)]
    mentions = {package: found.count(package) for package in PACKAGES}
    assert {package: n for package, n in mentions.items() if n > MENTIONS_FRAMEWORKS[package]} == {}


def test_no_path_of_the_machine_it_was_written_on_is_in_the_project() -> None:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True).stdout.split()
    here = f"{ROOT}/"
    wrong = []
    for name in listed:
        path = ROOT / name
        if path.suffix in {".onnx", ".npy", ".png"} or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if here in line:
                wrong.append(f"{name}:{number}")
    assert wrong == []


def test_no_pattern_makes_a_group_possessive() -> None:
    # Python 3.11.0 to 3.11.4 match such groups wrongly (CPython gh-106052); single characters are right everywhere.
    possessive = re.compile(r"r[bf]?[\"'].*\)(?:[*+?]|\{+[0-9,]+\}+)\+")
    found = [
        f"{name_of(path)}:{number}"
        for path in MODULES
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if possessive.search(line)
    ]
    assert found == []


def test_every_path_whose_branches_must_all_be_tested_is_there() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["coverage"]
    assert "--cov-fail-under=100" in (ROOT / "Makefile").read_text(encoding="utf-8")
    for pattern in settings["run"]["include"]:
        assert list(ROOT.glob(pattern)), pattern
