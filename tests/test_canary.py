"""A secret that is pasted is seen by nobody: not in an answer, a file, a log, an error, or what is kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.every_case import every_case
from tests.incidents import KTO_SINGLE
from tests.test_mask import BODY, HEX, KEYED, NAMES, NOTATIONS, SHAPES
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.serialization import to_json
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import Feedback, History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.cli import main
from trainmedic.ui.present import github, sarif, text

PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}{BODY}\n-----END RSA PRIVATE KEY-----"
SECRETS: Mapping[str, str] = {
    **SHAPES,
    "wandb_hex_key": f"wandb login {HEX}",
    "private_key": PEM,
    **{f"keyed: {context}": context.format(BODY[:24]) for context in KEYED if "\\" not in context},
    **{
        f"apart: {notation}": notation.format(name=NAMES[number % len(NAMES)], value=BODY[:24])
        for number, notation in enumerate(NOTATIONS)
        if "\\" not in notation
    },
}
"""Kind → a text that holds a secret of it. What is escaped already is not escaped once more here."""
FEW = tuple(SECRETS)[::6]
"""Kinds for what takes longer: that every kind is masked where a text is read is a test of its own."""
CORES = (BODY[:24], BODY[:12], BODY[-12:], HEX[8:32], "ABCD1234EFGH5678", "12345678-90ab-cdef")
"""Parts of the secrets, long enough that nothing else has them."""
TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in x\n'
RULE = "openrlhf-kto-vanilla-loss-single-class"


def everywhere(secret: str) -> tuple[Attachment, ...]:
    """The secret in every kind of file, beside a fault that is found, so that its lines are quoted."""
    one_line = " ".join(secret.split("\n"))
    quoted = json.dumps(secret, ensure_ascii=False)
    return (
        Attachment(name="train.sh", content=f"export X={one_line}\n# {one_line}\n" + KTO_SINGLE),
        Attachment(name="train.yaml", content=f"# {one_line}\nhub: {quoted}\nstage: kto\n"),
        Attachment(name="ds.json", content=f'{{"fp16": {{"enabled": true}}, "note": {quoted}}}'),
        Attachment(name="train.py", content=f"KEY = {quoted}\nDPOConfig(beta=0.1, run_name={quoted})\n"),
        Attachment(name="a.toml", content=f"run_name = {quoted}\n"),
        Attachment(name="a.log", content=f"step 1 loss nan {one_line}\nRuntimeError: {one_line} is refused\n"),
        Attachment(name="b.log", content=f"{TRACEBACK}ValueError: {one_line}\n"),
        Attachment(name="c.log", content=secret.encode("utf-16")),
        Attachment(name=f"run {one_line[:150]}.log", content="loss: nan\n"),
    )  # fmt: skip


def assert_clean(shown: str, secret: str) -> None:
    assert secret not in shown
    for core in CORES:
        assert core not in shown, core


@every_case("kind", SECRETS)
def test_what_is_read_of_any_file_does_not_hold_the_secret(kind: str) -> None:
    secret = SECRETS[kind]
    for source in parse(f"why? {secret}", everywhere(secret)).sources:
        assert_clean(source.text, secret)


@pytest.fixture
def kept(knowledge_advisor: Advisor, tmp_path: Path) -> Iterator[tuple[Advisor, Path]]:
    """An advisor whose history is a file."""
    path = tmp_path / "history.sqlite3"
    history = History(f"sqlite:///{path}")
    yield Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(history)), tmp_path
    history.close()


@every_case("kind", FEW)
def test_no_field_of_an_answer_and_nothing_kept_holds_the_secret(
    kept: tuple[Advisor, Path], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    advisor, folder = kept
    secret = SECRETS[kind]
    answer = advisor.ask(Ask(question=f"kto loss is nan, {secret} is my key", attachments=everywhere(secret)))
    assert RULE in {f.rule_id for f in answer.findings}
    assert sum(masked.count for masked in answer.receipt.masked) >= 5
    assert_clean(to_json(answer), secret)
    follow_up = advisor.ask(Ask(question=f"and now {secret}?", conversation_id=answer.conversation_id))
    assert_clean(to_json(follow_up), secret)
    advisor.memory.give_feedback(
        Feedback(answer_id=answer.id, reaction="down", reason=secret, comment=f"my key: {secret}")
    )
    assert advisor.memory.history is not None
    advisor.memory.history.close()
    stored = b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())
    assert b"my key" in stored
    assert_clean(stored.decode("utf-8", "replace"), secret)
    assert_clean("\n".join(record.getMessage() for record in caplog.records), secret)


@every_case("kind", FEW)
def test_no_presentation_of_a_report_holds_the_secret(knowledge_advisor: Advisor, kind: str) -> None:
    secret = SECRETS[kind]
    view = knowledge_advisor.check(everywhere(secret))
    assert RULE in {f.rule_id for f in view.findings}
    assert any(f.patch for f in view.findings)
    for shown in (
        to_json(view),
        json.dumps(sarif.log(view), ensure_ascii=False),
        github.report(view),
        text.report(view, "en", patches=True),
        text.report(view, "zh", patches=True),
    ):
        assert_clean(shown, secret)


def test_nothing_that_the_api_sends_holds_the_secret(
    kept: tuple[Advisor, Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    advisor, _ = kept
    with TestClient(create_app(advisor, Settings()), raise_server_exceptions=False) as client:
        for kind in FEW[:3]:
            secret = SECRETS[kind]
            files = [{"name": "train.sh", "content": f"{KTO_SINGLE} --x {secret}"}]
            sent = (
                client.post("/v1/ask", json={"question": secret, "attachments": files}),
                client.post("/v1/ask", json={"question": secret, "attachments": files, "stream": True}),
                client.post("/v1/check", json={"attachments": files}),
                client.post("/v1/search", json={"query": f"{secret} loss nan"}),
                client.post("/v1/ask", json={"question": "q", "mode": secret}),
                client.post("/v1/ask", json={"question": "q", secret: secret}),
                client.post("/v1/search", json={"query": "q", "filters": {"kind": secret}}),
                client.post("/v1/feedback", json={"answer_id": secret, "reaction": "up", "comment": secret}),
                client.post("/v1/ask", content=f'{{"question": "{secret}'.encode()),
                client.get(f"/v1/cases/{secret}"),
                client.get(f"/v1/rules/{secret}"),
                client.get(f"/{secret}"),
                client.get("/v1/cases", params={"language": secret}),
                client.get("/metrics"),
            )
            for response in sent:
                assert response.status_code < 500, kind
                assert_clean(response.text, secret)
                assert_clean(str(response.headers), secret)
    own = [r for r in caplog.records if not r.name.startswith(("httpx", "httpcore"))]
    for kind in FEW[:3]:
        assert_clean("\n".join(record.getMessage() for record in own), SECRETS[kind])


@pytest.mark.parametrize(("output", "kind"), [*zip(("text", "json", "sarif", "github"), FEW[1:], strict=False)])
def test_nothing_that_the_command_line_prints_holds_the_secret(
    output: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret, names = SECRETS[kind], []
    for attachment in everywhere(secret)[:-1]:
        path = tmp_path / attachment.name
        raw = attachment.content
        path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
        names.append(str(path))
    main(["check", *names, "--format", output, "--diff", "--exit-zero"])
    shown = capsys.readouterr()
    assert RULE in shown.out
    assert_clean(shown.out + shown.err, secret)


def test_the_patch_of_a_file_with_a_secret_still_fits_the_file(knowledge_advisor: Advisor) -> None:
    secret = SHAPES["huggingface_token"]
    script = KTO_SINGLE.replace("--bf16", f"--wandb_key {secret} --bf16")
    view = knowledge_advisor.check((Attachment(name="train.sh", content=script),))
    finding = next(f for f in view.findings if f.rule_id == RULE)
    line = next(line for line in script.split("\n") if secret in line)
    assert finding.patch is not None
    assert line.replace(secret, "hf_" + "*" * (len(secret) - 3)).rstrip(" \\") in finding.patch
