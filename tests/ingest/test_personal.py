"""Persons and machines in a write-up are hidden; what only looks like them stays."""

from __future__ import annotations

import pytest

from trainmedic.ingest.document import Block, Discussion, Document, Message
from trainmedic.ingest.personal import hidden, without_persons
from trainmedic.ingest.threads import digest_of, thread_of


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("负责人：张小明 2025-01-02", "负责人：*** 2025-01-02"),
        ("Author: Jane Miller", "Author: ***"),
        ("Reported by Jane Miller on Monday", "Reported by *** on Monday"),
        ("see /home/jmiller/run/log.txt", "see /home/***/run/log.txt"),
        ("saved to /mnt/nfs/users/jmiller", "saved to /mnt/nfs/users/***"),
        (r"C:\Users\jmiller\train.py", r"C:\Users\***\train.py"),
        ("root@gpu-node-17:~# python train.py", "***:~# python train.py"),
        ("call +49 170 1234567 at night", "call *** at night"),
        ("电话 13812345678", "电话 ***"),
        ("MASTER_ADDR=10.12.0.7", "MASTER_ADDR=***"),
        ("connect to 10.12.0.7:29500 failed", "connect to ***:29500 failed"),
        ("host gpu-3.cluster.internal is down", "host *** is down"),
        ("thanks @jane-m, that helped", "thanks @***, that helped"),
    ],
)
def test_persons_and_machines_are_hidden(text: str, left: str) -> None:
    assert hidden(text) == left
    assert hidden(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "MASTER_ADDR=127.0.0.1",
        "nvidia-curand-cu12        10.3.5.147",
        "nvidia-cublas-cu12==12.4.5.8",
        "https://github.com/users/guide",
        "numel 15012345678",
        "the author of KTO says 1 to 5e-6",
        "transformers@v4.46.3",
        "fixed by upgrading to 3.4.1",
        "loss.local_rank",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert hidden(text) == text


def test_decorators_in_code_stay() -> None:
    code = Block(kind="code", text="@torch_compile\ndef f(): ...")
    document = Document(origin="x", title="by @jane", blocks=(code,), language="en")
    left = without_persons(document)
    assert (left.title, left.blocks) == ("by @***", (code,))


def test_a_thread_names_nobody_and_keeps_code_and_versions() -> None:
    text = "@bob it is fixed by vllm 0.8.5.1, see /home/bob/train.sh\n```\n@property\ndef x(): ...\n```"
    item = Discussion(
        origin="a",
        key="1",
        title="Reported by Ann Example: hang on gpu-7.train.internal",
        messages=(Message(text="hangs", role="reporter"), Message(text=text, role="maintainer", accepted=True)),
    )
    read = thread_of("tracker", item)
    assert read is not None
    thread, passages = read
    shown = " ".join((thread.title, *(quote.text for quote in thread.resolution), *passages))
    assert not any(word in shown for word in ("bob", "Ann", "gpu-7"))
    assert all(word in shown for word in ("0.8.5.1", "@property", "train.sh"))
    assert thread.digest == digest_of(item)
