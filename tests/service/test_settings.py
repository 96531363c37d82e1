"""Settings: which source wins, what is refused, and what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.every_case import every_case
from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.access.limits import item_of
from trainmedic.service.settings import SECRET_FIELDS, Settings, effective, is_loopback, load_settings
from trainmedic.service.storage.database import open_database
from trainmedic.ui.settings_page import default


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_default_listens_on_loopback_and_asks_for_no_key() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.keys) == ("127.0.0.1", 8000, frozenset())


def test_a_flag_beats_the_environment_which_beats_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("trainmedic.toml").write_text("port = 1\nreaders = 2\nconcurrency = 3\n")
    monkeypatch.setenv("TRAINMEDIC_PORT", "4")
    monkeypatch.setenv("TRAINMEDIC_READERS", "5")
    settings = load_settings({"port": 6, "host": None})
    assert (settings.port, settings.readers, settings.concurrency) == (6, 5, 3)


def test_the_file_may_have_tables_and_lists() -> None:
    Path("trainmedic.toml").write_text(
        'kb_paths = ["a", "b"]\napi_keys = ["one", "two"]\n[model]\nbase_url = "http://m/v1"\n'
        "[slack.channels.C1]\nquiet = true\n"
    )
    settings = load_settings()
    assert (settings.extra_pages, sorted(settings.keys)) == ((Path("a"), Path("b")), ["one", "two"])
    assert (settings.model_base_url, settings.slack_channels["C1"].quiet) == ("http://m/v1", True)


def test_an_unknown_key_of_a_table_is_named() -> None:
    Path("trainmedic.toml").write_text('[model]\nbase_ulr = "http://m/v1"\n')
    with pytest.raises(InvalidSettings, match=r"unknown setting model_base_ulr .did you mean model_base_url"):
        load_settings()


def test_a_secret_can_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one, two\n")
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", str(tmp_path / "keys"))
    assert load_settings().keys == {"one", "two"}


def test_an_unreadable_secret_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", "/nowhere/keys")
    with pytest.raises(InvalidSettings, match="/nowhere/keys cannot be read"):
        load_settings()


def test_every_secret_can_stand_in_a_file() -> None:
    secrets = {name for name, field in Settings.model_fields.items() if field.annotation is SecretStr}
    assert set(SECRET_FIELDS) == secrets


def test_a_secret_file_that_is_no_text_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", str(tmp_path / "keys"))
    with pytest.raises(InvalidSettings, match="keys is not UTF-8 text"):
        load_settings()


def test_an_empty_secret_does_not_hide_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one", encoding="utf-8")
    Path("trainmedic.toml").write_text('api_keys = "two"\n', encoding="utf-8")
    monkeypatch.setenv("TRAINMEDIC_API_KEYS", "")
    assert load_settings().keys == frozenset()
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", str(tmp_path / "keys"))
    assert load_settings().keys == {"one"}
    monkeypatch.setenv("TRAINMEDIC_API_KEYS", "three")
    assert load_settings().keys == {"three"}
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", "")
    assert load_settings().keys == {"three"}


@every_case(
    ("name", "value", "problem"),
    [
        ("rate_limit", "foo", "'foo' is not a limit such as 100/minute"),
        ("rate_limit_ask", "100", "'100' is not a limit"),
        ("rate_limit_login", "5/minute; 9/hour", "is not a limit"),
        ("rate_limit_storage", "disk", "must be memory, database, or a URL"),
        ("database_url", "nonsense", "must be a URL such as postgresql://"),
        ("database_url", "mysql://u:hunter2@h/x", "must be a URL such as postgresql://"),
    ],
)
def test_what_the_service_cannot_use_is_refused_with_the_settings(name: str, value: str, problem: str) -> None:
    with pytest.raises(InvalidSettings, match=f"^{name}: .*{problem}") as caught:
        load_settings({name: value})
    assert "hunter2" not in str(caught.value)


@every_case("limit", ["3000/minute", "5 per second", "2000 per 2 hours", "1/day", "7/3 MONTHS", "9peryear"])
def test_a_limit_is_what_the_package_limits_reads(limit: str) -> None:
    assert item_of("rate_limit", load_settings({"rate_limit": limit}).rate_limit)


def test_a_database_url_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(InvalidSettings, match="database_url is not a database URL") as caught:
        open_database(load_settings({"database_url": "postgresql://u:hunter2@h:port/x"}).history_url)
    assert "hunter2" not in f"{caught.value} {caught.value.hint} {caught.value.__cause__}"


def test_the_table_of_settings_shows_defaults_that_are_no_secrets() -> None:
    assert [default(Settings.model_fields[name]) for name in ("rate_limit_storage", "vector_store", "api_keys")] == [
        "`memory`",
        "`faiss`",
        "",
    ]


@every_case("name", ["api_keys", "admin_keys"])
def test_a_key_that_can_be_guessed_is_refused_where_others_reach_the_port(name: str) -> None:
    given = {"host": "0.0.0.0", "require_key": True, name: f"{'x' * 16},a"}
    with pytest.raises(InvalidSettings, match=f"{name} has a key of fewer than 16 characters") as caught:
        load_settings(given)
    assert caught.value.hint is not None
    _, _, suggested = caught.value.hint.rpartition(" ")
    assert load_settings({**given, name: suggested}).guarded
    assert load_settings({**given, "host": "127.0.0.1"}).guarded


def test_an_unknown_variable_is_an_error_with_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_PROT", "1")
    with pytest.raises(InvalidSettings) as caught:
        load_settings()
    assert caught.value.message == "unknown setting TRAINMEDIC_PROT"
    assert caught.value.hint == "did you mean TRAINMEDIC_PORT?"


def test_what_kubernetes_sets_for_services_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("trainmedic.toml").write_text("port = 9000\n", encoding="utf-8")
    for service in ("TRAINMEDIC", "TRAINMEDIC_DB"):
        monkeypatch.setenv(f"{service}_PORT", "tcp://10.0.0.1:8000")
        for name, value in {
            "SERVICE_HOST": "10.0.0.1",
            "SERVICE_PORT": "8000",
            "SERVICE_PORT_HTTP": "8000",
            "PORT_8000_TCP": "tcp://10.0.0.1:8000",
            "PORT_8000_TCP_PROTO": "tcp",
            "PORT_8000_TCP_PORT": "8000",
            "PORT_8000_TCP_ADDR": "10.0.0.1",
        }.items():
            monkeypatch.setenv(f"{service}_{name}", value)
    assert load_settings().port == 9000
    monkeypatch.setenv("TRAINMEDIC_PORT", "9001")
    assert load_settings().port == 9001


def test_an_unknown_key_of_the_file_is_an_error_with_a_suggestion() -> None:
    Path("trainmedic.toml").write_text("prot = 1\n")
    with pytest.raises(InvalidSettings, match=r"unknown setting prot \(did you mean port\?\)"):
        load_settings()


def test_a_bad_value_names_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_PORT", "eight")
    with pytest.raises(InvalidSettings, match="port: "):
        load_settings()


def test_a_configuration_file_that_is_named_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_CONFIG", "absent.toml")
    with pytest.raises(InvalidSettings, match=r"absent\.toml"):
        load_settings()


def test_listening_beyond_loopback_without_a_key_is_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"refusing to listen on 0\.0\.0\.0 without a key"):
        load_settings({"host": "0.0.0.0"})


def test_listening_beyond_loopback_with_a_key_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_API_KEYS", "a-long-enough-secret")
    assert load_settings({"host": "0.0.0.0"}).keys == {"a-long-enough-secret"}


@every_case("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_what_counts_as_loopback(host: str) -> None:
    assert is_loopback(host)


@every_case("host", ["0.0.0.0", "10.0.0.1", "::", "example.org"])
def test_what_is_beyond_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_effective_settings_show_every_setting_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_API_KEYS", "hunter2")
    shown = effective(load_settings())
    assert list(shown) == list(Settings.model_fields)
    assert shown["api_keys"] == "********"
    assert shown["embedder_api_key"] == ""
    assert "hunter2" not in str(shown)


def test_pages_of_a_team_come_from_a_path_list() -> None:
    settings = load_settings({"kb_paths": "/a:/b"})
    assert settings.extra_pages == (Path("/a"), Path("/b"))


@every_case("content", [b"port = \n", b"\xff\xfe"])
def test_a_configuration_file_that_is_no_toml_is_named(content: bytes) -> None:
    Path("trainmedic.toml").write_bytes(content)
    with pytest.raises(InvalidSettings, match=r"trainmedic\.toml is not TOML"):
        load_settings()
