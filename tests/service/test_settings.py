"""Settings: which source wins, what is refused, and what is shown."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.every_case import every_case
from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.access.limits import item_of
from trainmedic.service.configuration import effective, known_settings, load_settings, settings_from
from trainmedic.service.settings import Settings, is_loopback
from trainmedic.service.storage.database import open_database
from trainmedic.ui.channels.slack.settings import SlackSettings
from trainmedic.ui.settings_page import default


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path("trainmedic.toml").write_text(text, encoding="utf-8")


def test_there_are_few_settings_and_the_core_names_no_channel() -> None:
    assert len(known_settings()) <= 48
    assert not {"slack", "feishu", "dingtalk"} & set(Settings.model_fields)


def test_settings_are_read_without_the_packages_of_a_service() -> None:
    code = (
        "import sys; from trainmedic.service.configuration import load_settings; load_settings(); "
        "sys.exit(bool({'fastapi', 'sqlalchemy', 'httpx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_flag_beats_the_environment_which_beats_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write("port = 1\nhistory_days = 2\nconcurrency = 3\n[model]\nname = 'a'\nmax_tokens = 100\n")
    monkeypatch.setenv("TRAINMEDIC_PORT", "4")
    monkeypatch.setenv("TRAINMEDIC_HISTORY_DAYS", "5")
    monkeypatch.setenv("TRAINMEDIC_MODEL_NAME", "b")
    settings = load_settings({"port": 6, "host": None})
    assert (settings.port, settings.history_days, settings.concurrency) == (6, 5, 3)
    assert (settings.model.name, settings.model.max_tokens) == ("b", 100)


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("model_base_url", "http://m/v1", "model.base_url"),
        ("model_context_tokens", 4096, "model.context_tokens"),
        ("rate_limit", "5/day", "rate.limit"),
        ("rate_limit_ask", "5/day", "rate.limit_ask"),
        ("embedder", "openai:bge", "embedder.name"),
        ("embedder_base_url", "http://e/v1", "embedder.base_url"),
        ("history_days", 7, "history_days"),
    ],
)
def test_a_setting_has_one_name_in_the_environment_and_in_the_file(
    name: str, value: str | int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> object:
        place: object = load_settings()
        for part in path.split("."):
            place = getattr(place, part)
        return place

    write(f"{name} = {value!r}\n")
    assert found() == value
    Path("trainmedic.toml").unlink()
    monkeypatch.setenv(f"TRAINMEDIC_{name.upper()}", str(value))
    assert found() == value


def test_the_file_may_have_tables_and_lists() -> None:
    write(
        'kb_paths = ["a", "b"]\napi_keys = ["one", "two"]\n[model]\nbase_url = "http://m/v1"\n'
        '[rate]\nlimit_ask = "1/day"\n[slack.channels.C1]\nquiet = true\n'
    )
    settings = load_settings()
    assert (settings.extra_pages, sorted(settings.keys)) == ((Path("a"), Path("b")), ["one", "two"])
    assert (settings.model.base_url, settings.rate.limit_ask) == ("http://m/v1", "1/day")
    assert settings.of(SlackSettings).channels["C1"].quiet


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("prot = 1", r"unknown setting prot \(did you mean port\?\)"),
        ('[model]\nbase_ulr = "x"', r"unknown setting model_base_ulr \(did you mean model_base_url\?\)"),
        ('[modle]\nbase_url = "x"', r"unknown setting modle"),
        ('[model.base]\nurl = "x"\nulr = "x"', r"unknown setting model_base_ulr"),
        ("[slack.channels.C1]\nloud = true", r"unknown setting slack_channels\.C1\.loud"),
        ("port = \n", r"trainmedic\.toml is not TOML"),
        ("\udcff", r"trainmedic\.toml is not TOML"),
    ],
)
def test_what_is_wrong_with_the_file_is_named(text: str, problem: str) -> None:
    Path("trainmedic.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidSettings, match=problem):
        load_settings()


def test_a_configuration_file_that_is_named_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_CONFIG", "absent.toml")
    with pytest.raises(InvalidSettings, match=r"absent\.toml"):
        load_settings()


def test_an_unknown_variable_is_an_error_with_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_PROT", "1")
    with pytest.raises(InvalidSettings) as caught:
        load_settings()
    assert caught.value.message == "unknown setting TRAINMEDIC_PROT"
    assert caught.value.hint == "did you mean TRAINMEDIC_PORT?"


# --- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, setting in known_settings().items() if setting.is_secret])
def test_every_secret_can_stand_in_a_file_and_is_not_shown(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("sqlite:///hunter2\n", encoding="utf-8")
    monkeypatch.setenv(f"TRAINMEDIC_{name.upper()}_FILE", str(tmp_path / "secret"))
    shown = effective(load_settings())
    assert shown[name] == "********"
    assert "hunter2" not in str(shown)


def test_the_effective_settings_are_all_settings_by_name() -> None:
    shown = effective(load_settings())
    assert list(shown) == list(known_settings())
    assert (shown["host"], shown["api_keys"], shown["slack_channels"]) == ("127.0.0.1", "", {})


@pytest.mark.parametrize(("content", "problem"), [(None, "cannot be read"), (b"\xff\xfe", "is not UTF-8 text")])
def test_an_unreadable_secret_file_is_named(
    content: bytes | None, problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "keys").write_bytes(content)
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", str(tmp_path / "keys"))
    with pytest.raises(InvalidSettings, match=f"TRAINMEDIC_API_KEYS_FILE: .*keys {problem}"):
        load_settings()


def test_an_empty_secret_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one", encoding="utf-8")
    write('api_keys = "two"\n')
    monkeypatch.setenv("TRAINMEDIC_API_KEYS", "")
    assert load_settings().keys == {"two"}
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", str(tmp_path / "keys"))
    assert load_settings().keys == {"one"}
    monkeypatch.setenv("TRAINMEDIC_API_KEYS", "three")
    assert load_settings().keys == {"three"}


# --- values ---------------------------------------------------------------------------------------------------------


@every_case(
    ("name", "value", "problem"),
    [
        ("port", "eight", "valid integer"),
        ("rate_limit", "foo", "'foo' is not a limit such as 100/minute"),
        ("rate_limit_ask", "5/minute; 9/hour", "is not a limit"),
        ("rate_limit_storage", "disk", "must be memory, database, or a URL"),
        ("database_url", "mysql://u:hunter2@h/x", "must be a URL such as postgresql://"),
        ("model_timeout_s", "0", "greater than 0"),
        ("slack_channels", "{", "Expecting property name"),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_setting(
    name: str, value: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(f"TRAINMEDIC_{name.upper()}", value)
        with pytest.raises(InvalidSettings, match=f"^{name}: .*{problem}") as caught:
            load_settings()
    assert "hunter2" not in str(caught.value)


@every_case("limit", ["3000/minute", "5 per second", "2000 per 2 hours", "1/day", "7/3 MONTHS", "9peryear"])
def test_a_limit_is_what_the_package_limits_reads(limit: str) -> None:
    assert item_of("rate_limit", load_settings({"rate_limit": limit}).rate.limit)


def test_a_database_url_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(InvalidSettings, match="database_url is not a database URL") as caught:
        open_database(load_settings({"database_url": "postgresql://u:hunter2@h:port/x"}).history_url)
    assert "hunter2" not in f"{caught.value} {caught.value.hint} {caught.value.__cause__}"


def test_the_table_of_settings_shows_defaults_that_are_no_secrets() -> None:
    fields = [known_settings()[name].field for name in ("rate_limit_storage", "api_keys")]
    assert [default(field) for field in fields] == ["`memory`", ""]


def test_what_kubernetes_sets_for_services_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    write("port = 9000\n")
    for service in ("TRAINMEDIC", "TRAINMEDIC_DB"):
        monkeypatch.setenv(f"{service}_PORT", "tcp://10.0.0.1:8000")
        monkeypatch.setenv(f"{service}_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv(f"{service}_SERVICE_PORT", "8000")
        monkeypatch.setenv(f"{service}_SERVICE_PORT_HTTP", "8000")
        monkeypatch.setenv(f"{service}_PORT_8000_TCP", "tcp://10.0.0.1:8000")
        monkeypatch.setenv(f"{service}_PORT_8000_TCP_ADDR", "10.0.0.1")
    assert load_settings().port == 9000
    monkeypatch.setenv("TRAINMEDIC_PORT", "9001")
    assert load_settings().port == 9001


# --- addresses ------------------------------------------------------------------------------------------------------


def test_listening_beyond_loopback_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSettings, match=r"refusing to listen on 0\.0\.0\.0 without a key"):
        load_settings({"host": "0.0.0.0"})
    monkeypatch.setenv("TRAINMEDIC_API_KEYS", "a-long-enough-secret")
    assert load_settings({"host": "0.0.0.0"}).keys == {"a-long-enough-secret"}


@every_case("name", ["api_keys", "admin_keys"])
def test_a_key_that_can_be_guessed_is_refused_where_others_reach_the_port(name: str) -> None:
    given = {"host": "0.0.0.0", "require_key": True, name: f"{'x' * 16},a"}
    with pytest.raises(InvalidSettings, match=f"{name} has a key of fewer than 16 characters") as caught:
        load_settings(given)
    assert caught.value.hint is not None
    _, _, suggested = caught.value.hint.rpartition(" ")
    assert load_settings({**given, name: suggested}).guarded
    assert load_settings({**given, "host": "127.0.0.1"}).guarded


def test_what_counts_as_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.1", "::", "example.org")))


def test_another_process_gets_the_same_settings() -> None:
    given = settings_from({"port": 8123, "api_keys": "k" * 20})
    assert pickle.loads(pickle.dumps(given)) == given
