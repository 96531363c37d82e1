"""Persons and machines in a write-up are hidden; what only looks like them stays."""

from __future__ import annotations

import time

import pytest

from trainmedic.ingest.items import Block, Discussion, Document, Message
from trainmedic.ingest.personal import hidden, names_in, people, without_people, without_persons
from trainmedic.ingest.threads.facts import digest_of, read_item


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
        ("thanks @jane.", "thanks @***."),
        ("**@jane** said", "**@***** said"),
        ("file:///home/jane/x", "file:///home/***/x"),
        ("PYTHONPATH=/a:/home/jane/lib", "PYTHONPATH=/a:/home/***/lib"),
        ("gpu-17:/home/jane/x", "gpu-17:/home/***/x"),
        ("error:/home/jane", "error:/home/***"),
        ("cat ~jane/x", "cat ***/x"),
        ("C:/Users/jane/x", "C:/Users/***/x"),
        (r'"C:\\Users\\jane"', r'"C:\\Users\\***"'),
        (r"C:\Users\Jane Miller\x", r"C:\Users\***\x"),
        ("at rank0@gpu-17.corp.internal.", "at ***."),
        ("jane@corp.internal", "***"),
        ("gpu-17.corp.example.com:29500", "***:29500"),
        ("http://login.internal:8080/x", "http://***:8080/x"),
        ("ssh jane@gpu17 ls", "ssh *** ls"),
        ("eth0:10.0.3.4<0>", "eth0:***<0>"),
        ("listens at 10.0.3.4 only", "listens at *** only"),
        ("[192.168.4.20]", "[***]"),
        ("fe80::1ff:fe23:4567:890a", "***"),
        ("MASTER_ADDR=gpu-17 USER=jane", "MASTER_ADDR=*** USER=***"),
        ("gpu-17:412:418 [3] NCCL INFO x", "***:412:418 [3] NCCL INFO x"),
        ("https://wandb.ai/jane/grpo/runs/1", "https://wandb.ai/***/grpo/runs/1"),
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
        "threading.local() and wandb.sdk.internal.sender",
        "tensorrt   10.0.1.6",
        "libcurand 10.3.5.147",
        "x[1::2] + y[::2] at 12:34:56",
        "src/users/models.py",
        "/home/<user>/x and /home/$USER",
        "USER: what is this?",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert hidden(text) == text


def test_decorators_in_code_stay() -> None:
    code = Block(kind="code", text="@torch_compile\ndef f(): ...")
    document = Document(origin="x", title="by @jane", blocks=(code,), language="en")
    left = without_persons(document)
    assert (left.title, left.blocks) == ("by @***", (code,))


def test_a_handle_in_a_comment_of_code_is_hidden() -> None:
    assert hidden("x = a @b  # ask @jane", code=True) == "x = a @b  # ask @***"


def test_what_was_found_in_one_place_is_hidden_in_the_others() -> None:
    blocks = (
        Block(kind="code", text='File "/home/jane/a.py", line 1\n[jane@gpu-17 a]$ ls'),
        Block(kind="text", text="see /data/jane/out on gpu-17, not gpu-170"),
    )
    left = without_persons(Document(origin="x", title="gpu-17 hangs", blocks=blocks, language="en"))
    assert left.title == "*** hangs"
    assert left.blocks[1].text == "see /data/***/out on ***, not gpu-170"


def test_the_account_of_an_image_is_no_name_elsewhere() -> None:
    blocks = (Block(kind="text", text="/home/ray/x"), Block(kind="text", text="/opt/ray/lib and ray"))
    left = without_persons(Document(origin="x", title="t", blocks=blocks, language="en"))
    assert [block.text for block in left.blocks] == ["/home/***/x", "/opt/ray/lib and ray"]


def test_a_secret_that_markup_had_cut_in_two_is_masked() -> None:
    block = Block(kind="code", text='password = "hunter2secret"')
    left = without_persons(Document(origin="x", title="t", blocks=(block,), language="en"))
    assert "hunter2" not in left.blocks[0].text


def test_members_of_a_workspace_are_hidden_and_words_stay() -> None:
    names = people(["Bob Martinez", "bob", "Will", "max", "张伟"])
    text = "Bob's fix: bob will set max_len, Martinez agrees，感谢张伟的帮助"
    assert without_people(text, names) == "***'s fix: *** will set max_len, *** agrees，感谢***的帮助"


def test_a_thread_names_nobody_and_keeps_code_and_versions() -> None:
    text = "@bob it is fixed by vllm 0.8.5.1, see /home/bob/train.sh\n```\n@property\ndef x(): ...\n```"
    item = Discussion(
        origin="a",
        key="1",
        title="Reported by Ann Example: hang on gpu-7.train.internal",
        messages=(Message(text="hangs", role="reporter"), Message(text=text, role="maintainer", accepted=True)),
    )
    read = read_item("tracker", item)
    assert read is not None
    thread, passages = read.thread, read.passages
    shown = " ".join((thread.title, *(quote.text for quote in thread.resolution), *passages))
    assert not any(word in shown for word in ("bob", "Ann", "gpu-7"))
    assert all(word in shown for word in ("0.8.5.1", "@property", "train.sh"))
    assert thread.digest == digest_of(item)


@pytest.mark.parametrize(
    "part",
    ["a-", "a.", "@a", "/home/", "a@", "1.1.", "+49 1", ":1:", "ssh a", "~a", "x.local-", "reported by A ", "节点 "],
)
def test_hostile_repetition_takes_linear_time(part: str) -> None:
    def taken(characters: int) -> float:
        text = part * (characters // len(part))
        times = []
        for _ in range(3):
            started = time.process_time()
            hidden(text, names=names_in([text]))
            times.append(time.process_time() - started)
        return min(times)

    # Quadratic growth would take sixteen times as long; a short time says nothing.
    assert taken(40_000) < max(0.2, 8 * taken(10_000))
