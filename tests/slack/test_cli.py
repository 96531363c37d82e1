"""``trainmedic slack`` as a program, and the manifest of the app."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml

from tests.slack.fake import LocalSlack
from tests.slack.fake.model import ALL_EVENTS, ALL_SCOPES
from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.advisor import Advisor
from trainmedic.service.settings import Settings, load_settings
from trainmedic.ui.channels.slack import configured
from trainmedic.ui.channels.slack.bot import COMMAND, DIAGNOSE
from trainmedic.ui.channels.slack.scopes import SCOPES
from trainmedic.ui.cli import CLEAN, USAGE, main

ROOT = Path(__file__).parent.parent.parent
PROGRAM = "import sys; from trainmedic.ui.cli import main; sys.exit(main())"


def manifest() -> dict[str, Any]:
    text = (ROOT / "ui" / "channels" / "slack" / "manifest.yaml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    assert isinstance(found, dict)
    return found


def test_the_manifest_is_printed_without_any_token(own_slack: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slack", "--manifest"]) == CLEAN
    assert yaml.safe_load(capsys.readouterr().out) == manifest()


def test_the_manifest_asks_for_what_the_bot_uses_and_keeps_slacks_limits() -> None:
    app = manifest()
    scopes = app["oauth_config"]["scopes"]
    assert set(scopes["bot"]) == set(SCOPES)
    assert {*scopes["bot"], *scopes["bot_optional"]} <= ALL_SCOPES
    events = app["settings"]["event_subscriptions"]
    assert set(events["bot_events"]) <= ALL_EVENTS
    assert set(events) == {"bot_events"}
    features = app["features"]
    [shortcut], [command] = features["shortcuts"], features["slash_commands"]
    assert (shortcut["callback_id"], command["command"]) == (DIAGNOSE, COMMAND)
    assert command["should_escape"] is False  # it would change pasted configs
    assert len(shortcut["name"]) <= 24
    shown = app["display_information"]
    assert len(str(shown["name"])) <= 35
    assert len(str(shown["description"])) <= 140
    assert 175 <= len(str(shown["long_description"])) <= 4_000


def test_slacks_libraries_are_loaded_only_when_they_are_used() -> None:
    code = (
        "import sys, trainmedic.ui.channels.slack, trainmedic.ui.channels.slack.command; "
        "sys.exit(bool({'slack_bolt', 'slack_sdk', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_without_tokens_it_says_what_to_do(
    own_slack: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["slack"]) == USAGE
    assert "SLACK_BOT_TOKEN is not set (trainmedic slack --manifest" in capsys.readouterr().err


def test_half_of_the_tokens_is_an_error() -> None:
    assert configured(Settings()) is False
    assert configured(Settings(slack_bot_token="xoxb-1", slack_app_token="xapp-1")) is True
    with pytest.raises(InvalidSettings, match="alone is not enough"):
        configured(Settings(slack_bot_token="xoxb-1"))
    with pytest.raises(InvalidSettings, match="SLACK_BOT_TOKEN is not set"):
        configured(Settings(slack_app_token="xapp-1"))


def test_well_known_names_files_and_our_own_names_are_read(
    own_slack: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app").write_text("xapp-file\n")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-known")
    monkeypatch.setenv("SLACK_APP_TOKEN_FILE", str(tmp_path / "app"))
    monkeypatch.setenv("TRAINMEDIC_SLACK_SIGNING_SECRET", "ours")
    monkeypatch.setenv("TRAINMEDIC_SLACK_CHANNELS", '{"C1": {"quiet": true, "language": "zh"}}')
    settings = load_settings()
    assert settings.slack_bot_token.get_secret_value() == "xoxb-known"
    assert settings.slack_app_token.get_secret_value() == "xapp-file"
    assert settings.slack_signing_secret.get_secret_value() == "ours"
    assert (settings.slack_channels["C1"].quiet, settings.slack_channels["C1"].language) == (True, "zh")
    monkeypatch.setenv("SLACK_APP_TOKEN_FILE", "/nowhere/token")
    with pytest.raises(InvalidSettings, match="SLACK_APP_TOKEN_FILE: /nowhere/token cannot be read"):
        load_settings()


def test_channels_are_read_from_the_file(own_slack: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trainmedic.toml").write_text('[slack_channels.C1]\nanswers = "all"\n[slack_channels."*"]\nquiet = true\n')
    channels = load_settings().slack_channels
    assert (channels["C1"].answers, channels["*"].quiet) == ("all", True)
    Path("trainmedic.toml").write_text("[slack_channels.C1]\nloud = true\n")
    with pytest.raises(InvalidSettings, match="loud"):
        load_settings()


def test_the_program_answers_and_finishes_when_told_to_stop(
    strict: LocalSlack, tmp_path: Path, knowledge_folder: Path, knowledge_advisor: Advisor
) -> None:
    data = copytree(knowledge_folder, tmp_path / "data")
    environment = {
        **os.environ,
        "SLACK_BOT_TOKEN": strict.bot_token,
        "SLACK_APP_TOKEN": strict.app_token,
        "TRAINMEDIC_SLACK_API_URL": strict.api_url,
        "TRAINMEDIC_DATA_DIR": str(data),
        "PYTHONPATH": str(ROOT),
    }
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "slack"], env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    try:
        strict.wait(lambda: strict.connections > 0 or program.poll() is not None, "a connection", patience_s=90)
        said = strict.says("<@U0BOT> 训练 loss 变成 nan 怎么办？")
        strict.wait(lambda: any(each.bot_id for each in strict.replies(said.ts)), "an answer", patience_s=60)
        program.send_signal(signal.SIGTERM)
        _, told = program.communicate(timeout=60)
    finally:
        program.kill()
        program.wait()
    assert program.returncode == 0, told
    assert "answers in Slack (team T0LOCAL, Socket Mode)" in told
    assert "finishing the open questions" in told
