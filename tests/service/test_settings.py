"""Settings: which source wins, what is refused, and what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.settings import Settings, effective, is_loopback, load_settings


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_default_listens_on_loopback_and_asks_for_no_key() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.keys) == ("127.0.0.1", 8000, frozenset())


def test_a_flag_beats_the_environment_which_beats_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("trainmedic.toml").write_text("port = 1\ntop_k = 2\nconcurrency = 3\n")
    monkeypatch.setenv("TRAINMEDIC_PORT", "4")
    monkeypatch.setenv("TRAINMEDIC_TOP_K", "5")
    settings = load_settings({"port": 6, "host": None})
    assert (settings.port, settings.top_k, settings.concurrency) == (6, 5, 3)


def test_a_secret_can_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one, two\n")
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", str(tmp_path / "keys"))
    assert load_settings().keys == {"one", "two"}


def test_an_unreadable_secret_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_API_KEYS_FILE", "/nowhere/keys")
    with pytest.raises(InvalidSettings, match="/nowhere/keys cannot be read"):
        load_settings()


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
    monkeypatch.setenv("TRAINMEDIC_API_KEYS", "secret")
    assert load_settings({"host": "0.0.0.0"}).keys == {"secret"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_what_counts_as_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "example.org"])
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


@pytest.mark.parametrize("content", [b"port = \n", b"\xff\xfe"], ids=["syntax", "no UTF-8"])
def test_a_configuration_file_that_is_no_toml_is_named(content: bytes) -> None:
    Path("trainmedic.toml").write_bytes(content)
    with pytest.raises(InvalidSettings, match=r"trainmedic\.toml is not TOML"):
        load_settings()
