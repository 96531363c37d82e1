"""What is installed is what the repository holds: the wheels, the pinned set, the container's files."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import httpx
import pytest
import yaml
import zstandard
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from tenacity import Retrying, stop_after_delay, wait_fixed

from tests.every_case import every_case
from tests.incidents import KTO_SINGLE
from trainmedic.kb.store import shipped as locations
from trainmedic.kb.store.manifest import MANIFEST, read_manifest
from trainmedic.service.configuration import CONFIG_VARIABLE, known_settings, unknown_variables

ROOT = Path(__file__).parent.parent
PACKAGES = ("kb", "service", "ingest", "ui")
"""The folders; installed as ``trainmedic.kb`` and so on."""
NOT_SHIPPED = ("kb/data/",)
"""What the wheel of trainmedic-data holds."""
DATA = "kb/data"
INDEX = f"{DATA}/trainmedic_data/index"
MAX_WHEEL_MB = 7.5
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
Expected: TypeAlias = dict[tuple[str, ...], tuple[int, str]]
AUDITS = (("text", "trl"), ("json", "trl"), ("sarif", "trainmedic"), ("github", ""))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
EMBED = "from trainmedic.kb.store.embedder import OnnxEmbedder; OnnxEmbedder().vectors(['loss is nan'])"
FIRST_START = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from trainmedic.kb.store.embedder import OnnxEmbedder
def refuse(self, texts):
    raise AssertionError(f"{len(texts)} texts were embedded")
OnnxEmbedder.vectors = refuse
import trainmedic, trainmedic_data
for package in (trainmedic, trainmedic_data):
    assert package.__file__.startswith(sys.argv[1]), package.__file__
from trainmedic.service.settings import Settings
from trainmedic.ui.app import load_knowledge
print(len(load_knowledge(Settings(data_dir=Path(sys.argv[2]))).index.chunks))
"""
VERBS = """
import contextlib, io, json, sys
from trainmedic.ui.cli import main
done = []
for words in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    done.append((code, said.getvalue()))
print(json.dumps(done))
"""


def tracked(*folders: str) -> tuple[str, ...]:
    """The files and links that git tracks and that are there."""
    done = subprocess.run(["git", "ls-files", "-z", *folders], capture_output=True, text=True, cwd=ROOT, check=True)
    return tuple(name for name in done.stdout.split("\0") if name and (ROOT / name).exists())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory, knowledge_folder: Path) -> tuple[Path, Path]:
    """The wheels of trainmedic and of its data: of exactly the tracked files and the search index, without network."""
    source = tmp_path_factory.mktemp("source")
    for name in (*tracked("trainmedic", *PACKAGES, "tests"), "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    shutil.copytree(locations.index(), source / INDEX)
    return built(source, tmp_path_factory.mktemp("wheel")), built(source / DATA, tmp_path_factory.mktemp("data"))


def built(source: Path, out: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(out)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(wheels: tuple[Path, Path]) -> Path:
    return wheels[0]


def names_in(wheel: Path) -> frozenset[str]:
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


@pytest.fixture(scope="module")
def shipped(wheel: Path) -> frozenset[str]:
    """The names in the wheel of trainmedic."""
    return names_in(wheel)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_git_tracks_is_in_the_wheel(package: str, shipped: frozenset[str]) -> None:
    expected = {f"trainmedic/{name}" for name in tracked(package) if not name.startswith(NOT_SHIPPED)}
    assert expected
    assert sorted(expected - shipped) == []


def test_the_wheel_that_checks_files_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size <= MAX_WHEEL_MB * 1_000_000


def test_the_wheel_of_the_data_holds_the_encoder_its_notice_and_every_file_of_the_index(
    wheels: tuple[Path, Path],
) -> None:
    package, index = f"{DATA}/trainmedic_data", (MANIFEST, *read_manifest(locations.index()).files)
    expected = {*tracked(package), *(f"{INDEX}/{name}" for name in index)}
    names = {f"{DATA}/{name}" for name in names_in(wheels[1])}
    assert {name for name in names if name.startswith(f"{package}/")} == expected
    licences = {PurePosixPath(name).name for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE.txt"}


def test_the_data_is_of_the_version_that_the_extra_serve_asks_for() -> None:
    data = tomllib.loads((ROOT / DATA / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert data["version"] == PROJECT["version"]
    assert f"{data['name']}=={data['version']}" in PROJECT["optional-dependencies"]["serve"]


def test_unpacked_wheels_answer_in_a_new_data_folder_without_embedding_any_page(
    wheels: tuple[Path, Path], tmp_path: Path
) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-c", FIRST_START, str(tmp_path / "site"), str(tmp_path / "data")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == read_manifest(locations.index()).chunks
    assert not (tmp_path / "data").exists()


def test_make_puts_the_index_into_a_wheel_and_the_service_starts_without_one() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    command = "trainmedic index build --package"
    recipe = makefile.partition("\nwheel:")[2].partition("\n\n")[0]
    assert 0 < recipe.index(command) < recipe.index("pip --disable-pip-version-check wheel")
    assert "install: $(VENV)/.indexed" in makefile
    assert "serve: $(VENV)/.installed\n" in makefile
    assert f"{command} >/dev/null" in DOCKERFILE


def test_the_search_index_is_not_in_git() -> None:
    assert tracked(INDEX) == ()
    ignored = subprocess.run(["git", "check-ignore", "-q", f"{INDEX}/{MANIFEST}"], cwd=ROOT, check=False)
    assert ignored.returncode == 0


def test_the_repositorys_own_tools_are_not_in_the_wheel(shipped: frozenset[str]) -> None:
    for folder in NOT_SHIPPED:
        assert tracked(folder)
        assert [name for name in shipped if name.startswith(f"trainmedic/{folder}")] == []


def test_the_wheel_installs_one_package_and_nothing_else(shipped: frozenset[str]) -> None:
    others = {name for name in shipped if PurePosixPath(name).parts[0] != "trainmedic"}
    assert others
    assert {re.sub(r"^trainmedic-[^/]+\.dist-info/.*", "", name) for name in others} == {""}


@pytest.mark.slow
def test_the_installed_wheel_has_every_page_without_the_repository(alone: Path, tmp_path: Path) -> None:
    ((code, said),) = told(alone, tmp_path, ("kb", "list"))
    assert code == 0, said
    listed = {tuple(line.split()[:2]) for line in said.splitlines()}
    checks = {check for page in _pages("causes") for check in re.findall(r"^  - id: (\S+)$", page.read_text(), re.M)}
    pages = {("case", page.stem) for page in _pages("causes")} | {
        ("mechanism", page.stem) for page in _pages("mechanisms")
    }
    assert listed == pages | {("rule", check) for check in checks}


def _pages(folder: str) -> Iterable[Path]:
    """Pages lie in a folder of their family; a Markdown file right below is a note about the folder."""
    for name in tracked(f"kb/{folder}"):
        path = PurePosixPath(name)
        if path.suffix == ".md" and len(path.parts) == 4:
            yield ROOT / name


@every_case("name", PACKAGES)
def test_the_names_resolve_inside_the_repository(name: str) -> None:
    spec = find_spec(f"trainmedic.{name}")
    assert spec is not None
    assert [Path(place).resolve() for place in spec.submodule_search_locations or ()] == [ROOT / name]


# The wheel alone


WITHOUT = """
import sys
from importlib.machinery import PathFinder
HIDDEN = frozenset({hidden!r})
class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)
sys.meta_path[:] = [Installed if finder is PathFinder else finder for finder in sys.meta_path]
"""


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and its dependencies."""
    return environment(tmp_path_factory.mktemp("alone"), wheel)


@pytest.fixture(scope="module")
def serving(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the extra ``serve`` as well."""
    return environment(tmp_path_factory.mktemp("serving"), *wheels, extras=["serve"])


@pytest.fixture(scope="module")
def without_data(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of such an environment from which trainmedic-data was removed."""
    return environment(tmp_path_factory.mktemp("without"), wheel, extras=["serve"])


def environment(place: Path, *wheels: Path, extras: Iterable[str] = ()) -> Path:
    """The dependencies are those of the tests: they are found by their path, and all other packages are hidden."""
    venv.create(place, with_pip=False, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    needed = closure(requirements(*extras))
    installed = packages_distributions()
    hidden = {name for name, owners in installed.items() if not needed & set(map(canonicalize_name, owners))}
    install = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", "--no-compile", *map(str, wheels)], check=True)
    (site / "sitecustomize.py").write_text(WITHOUT.format(hidden=sorted(hidden - {"trainmedic"})), encoding="utf-8")
    # A line of a .pth file adds the folder alone, without the editable install that it holds.
    (site / "dependencies.pth").write_text(f"{Path(yaml.__file__).parent.parent}\n", encoding="utf-8")
    return place / "bin"


def outside(folder: Path) -> dict[str, str]:
    """The variables of a process where there is no checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINMEDIC_", "PYTHON"))}
    return {**kept, "TRAINMEDIC_DATA_DIR": str(folder / "data"), "LANG": "C.UTF-8"}


def told(programs: Path, folder: Path, *verbs: tuple[str, ...]) -> list[tuple[int, str]]:
    """The codes of these verbs and what they say, run one after another in one process."""
    tokens = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
    command = [str(programs / "python"), "-c", VERBS, json.dumps(verbs)]
    environment = {**outside(folder), **tokens}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return [(code, said) for code, said in json.loads(done.stdout)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "train.sh").write_text(KTO_SINGLE, encoding="utf-8")
    (tmp_path / "good.sh").write_text(KTO_SINGLE.replace(" --vanilla_loss", ""), encoding="utf-8")
    (tmp_path / "train.log.zst").write_bytes(zstandard.compress(b"step 1 loss nan\n"))
    (tmp_path / "requirements.txt").write_text("trl==0.19.0\ntransformers==4.52.4\n", encoding="utf-8")
    return tmp_path


def wrong(programs: Path, folder: Path, expected: Expected) -> list[object]:
    """The verbs that end otherwise than with this code and text."""
    return [
        (words, code, said[-600:])
        for words, (code, said) in zip(expected, told(programs, folder, *expected), strict=True)
        if code != expected[words][0] or expected[words][1] not in said
    ]


def test_the_base_is_small() -> None:
    assert len(requirements()) <= 6


@pytest.mark.slow
def test_the_wheel_alone_checks_audits_compares_explains_and_works_on_pages(alone: Path, files: Path) -> None:
    page = "kb/causes/openrlhf/openrlhf-kto-vanilla-loss-nan.md"
    shipped_page = str(next(alone.parent.glob(f"lib/python*/site-packages/trainmedic/{page}")))
    rule = "openrlhf-kto-vanilla-loss-single-class"
    checks: Expected = {
        ("check", "train.sh", "--format", form): (1, rule) for form in ("text", "json", "sarif", "github")
    }
    audits: Expected = {
        ("audit", "requirements.txt", "--fail-on", "never", "--format", form): (0, text) for form, text in AUDITS
    }
    expected: Expected = {
        **checks,
        **audits,
        ("check", "train.sh", "--diff"): (1, "+++ b/train.sh"),
        ("check", "train.log.zst"): (3, "pip install 'trainmedic[zstd]'"),
        ("diff", "good.sh", "train.sh"): (0, "vanilla_loss"),
        ("diff", "good.sh", "train.sh", "--format", "json"): (0, "vanilla_loss"),
        ("explain", "ValueError: Attempting to unscale FP16 gradients."): (0, "unscale"),
        ("kb", "lint", shipped_page): (0, "1 page, 0 problems"),
        ("kb", "list"): (0, rule),
        ("kb", "show", rule): (0, "vanilla_loss"),
        (
            *(
                "kb",
                "new",
                "cause",
                "a-new-case",
                "--folder",
                ".",
                "--seen",
                "it never stops",
                "--releases",
                "trl ? 0.12.0",
            ),
            *(
                "--run",
                "trl sft --dataset_name d --model_name_or_path m [[--packing]]",
                "--why",
                "A token is cut off.",
                "--source",
                "https://e.org/1",
            ),
        ): (0, "a-new-case.md"),
        ("--help",): (0, "trainmedic[serve]"),
        ("--version",): (0, "trainmedic 0.1.0"),
        ("mcp",): (3, "pip install 'trainmedic[serve]'"),
        ("ask", "KTO loss is nan, why?"): (3, "pip install 'trainmedic[serve]'"),
        ("serve",): (3, "pip install 'trainmedic[serve]'"),
    }
    assert wrong(alone, files, expected) == []


@pytest.mark.slow
def test_with_the_extra_serve_it_asks_and_searches(serving: Path, files: Path) -> None:
    expected: Expected = {
        ("ask", "KTO loss is nan, why?", "-f", "train.sh"): (0, "vanilla_loss"),
        ("search", "kto loss nan"): (0, "openrlhf-kto-vanilla-loss-nan"),
        ("index", "status"): (0, "prebuilt"),
        ("eval",): (3, "--set names a JSONL file of questions"),
        ("slack",): (2, "pip install 'trainmedic[slack]'"),
        ("mcp",): (3, "pip install 'trainmedic[mcp]'"),
    }
    assert wrong(serving, files, expected) == []
    assert not (files / "data" / "index").exists(), "the index of the wheel is used as it is"


@pytest.mark.slow
def test_without_the_data_it_says_what_is_missing(without_data: Path, files: Path) -> None:
    missing = (3, "trainmedic: the package trainmedic-data is not installed (pip install 'trainmedic[serve]')\n")
    expected: Expected = {
        **dict.fromkeys(
            (("ask", "KTO loss is nan, why?"), ("search", "kto"), ("serve",), ("index", "verify")), missing
        ),
        ("check", "train.sh"): (1, "openrlhf-kto-vanilla-loss-single-class"),
    }
    assert wrong(without_data, files, expected) == []


@pytest.mark.slow
def test_with_the_extra_serve_it_serves_until_it_is_told_to_stop(serving: Path, files: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [str(serving / "trainmedic"), "serve", "--port", str(port)],
        cwd=files,
        env=outside(files),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        for attempt in Retrying(wait=wait_fixed(0.2), stop=stop_after_delay(120), reraise=True):
            with attempt:
                assert process.poll() is None
                assert httpx.get(f"{url}/readyz").json()["status"] == "ok"
        body = {"question": "KTO loss is nan", "attachments": [{"name": "train.sh", "content": KTO_SINGLE}]}
        assert httpx.post(f"{url}/v1/ask", json=body, timeout=60).json()["verdict"] == "answered"
        assert httpx.get(f"{url}/", timeout=60).status_code in (200, 503)  # the pages, or that they are loading
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in said


# The pinned set


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return {canonicalize_name(line.split("==")[0]): line for line in lines}


def closure(requirements: Iterable[str]) -> frozenset[str]:
    """All packages that these requirements need on this machine, as far as they are installed here."""
    found: set[str] = set()
    waiting = [(Requirement(text), frozenset({""})) for text in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, extras = waiting.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(requirement.name)
        if (name, str(sorted(requirement.extras))) in seen:
            continue
        seen.add((name, str(sorted(requirement.extras))))
        found.add(name)
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        waiting += [(Requirement(text), frozenset({"", *requirement.extras})) for text in needs]
    return frozenset(found)


def requirements(*extras: str) -> list[str]:
    optional = PROJECT["optional-dependencies"]
    return [*PROJECT["dependencies"], *(text for extra in extras for text in optional[extra])]


def test_everything_that_make_installs_is_pinned() -> None:
    needed = closure(
        [
            *requirements("serve", "slack", "ingest", "postgres", "otel", "st"),
            *(text for group in ("dev", "docs") for text in PYPROJECT["dependency-groups"][group]),
        ]
    )
    cuda = {name for name in needed if name.startswith(("nvidia-", "cuda-", "triton"))}  # of a CUDA build of torch
    assert sorted(needed - cuda - set(pinned())) == ["trainmedic-data"]


def test_the_default_set_has_no_torch_and_no_cuda() -> None:
    needed = closure(requirements("serve", "slack", "ingest"))
    assert "onnxruntime" in needed
    assert [name for name in sorted(needed) if re.match(r"torch|nvidia|cuda|triton|transformers$", name)] == []


def test_no_pin_asks_for_a_newer_python_than_the_project_does() -> None:
    oldest = PROJECT["requires-python"].removeprefix(">=")
    wrong = []
    for name, line in pinned().items():
        try:
            metadata = distribution(name).metadata
        except PackageNotFoundError:
            continue
        wants = ",".join(metadata.get_all("Requires-Python", []))
        if line.endswith(f"=={metadata['Version']}") and not SpecifierSet(wants).contains(oldest):
            wrong.append(f"{line} needs Python {wants}")
    assert wrong == []


def test_pins_are_exact_and_said_once() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    assert len(pinned()) == len(lines)


# The container


def copied() -> tuple[str, ...]:
    """What the Dockerfile takes from the working copy."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
    return tuple(name for line in lines for name in line.split()[:-1])


def test_the_image_is_given_what_the_wheel_is_made_of_and_the_pins() -> None:
    assert {"trainmedic", *PACKAGES, "pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE"} == set(
        copied()
    )


def test_the_build_context_holds_what_is_copied_and_no_more() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == set(copied())


def test_the_image_installs_the_set_of_make_install() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rule = r"^\$\(VENV\)/\.installed:.*\n(?:\t@.*\n)*\t\$\(PIP\) --editable '\.(\[.+\])'"
    default = re.search(rule, makefile, re.MULTILINE)
    assert default is not None
    assert f'".{default[1]}" ./{DATA}' in DOCKERFILE
    assert "--constraint constraints.txt" in DOCKERFILE


@every_case("text", [DOCKERFILE, COMPOSE])
def test_every_variable_of_the_container_is_a_setting(text: str) -> None:
    named = set(re.findall(r"\bTRAINMEDIC_[A-Z_]+", text)) - {CONFIG_VARIABLE}
    assert named
    unknown_variables(dict.fromkeys(named, "x"))


def test_the_container_runs_without_root_and_without_a_writable_root() -> None:
    assert re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
    service = yaml.safe_load(COMPOSE)["services"]["trainmedic"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert {mount.split(":")[1] for mount in service["volumes"]} == {"/data"}


def test_the_secrets_of_the_composed_service_are_files_and_in_no_variable() -> None:
    compose = yaml.safe_load(COMPOSE)
    service = compose["services"]["trainmedic"]
    assert {"api_keys", "database_url"} == set(service["secrets"])
    files = {f"TRAINMEDIC_{secret.upper()}_FILE": f"/run/secrets/{secret}" for secret in service["secrets"]}
    assert service["environment"].items() >= files.items()
    secrets = {name for setting in known_settings().values() if setting.is_secret for name in setting.variables}
    assert not secrets & set(service["environment"])
    for secret in compose["secrets"].values():
        assert secret["file"].startswith("./var/")
        ignored = subprocess.run(["git", "check-ignore", "-q", secret["file"]], cwd=ROOT, check=False)
        assert ignored.returncode == 0


def test_published_ports_are_those_of_this_machine_only() -> None:
    ports = yaml.safe_load(COMPOSE)["services"]["trainmedic"]["ports"]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def image_variables() -> dict[str, str]:
    """What the last stage sets."""
    lines = re.findall(r"^ENV (.+)$", DOCKERFILE.split("\nFROM ")[-1], re.MULTILINE)
    return dict(pair.split("=", 1) for line in lines for pair in line.split())


def test_under_the_variables_of_the_image_nothing_is_left_in_the_home_folder(tmp_path: Path) -> None:
    given = {**image_variables(), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", EMBED], cwd=ROOT, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
