"""Persons and machines in a write-up are hidden; what only looks like them stays."""

from __future__ import annotations

import time

from tests.every_case import every_case
from trainmedic.ingest.items import Block, Discussion, Document, Message
from trainmedic.ingest.personal import hidden, without_persons
from trainmedic.ingest.sources.slack import called, unnamed
from trainmedic.ingest.threads.facts import digest_of, read_item
from trainmedic.kb.identities import identities_of


@every_case(
    ("text", "left"),
    [
        ("负责人：张小明 2025-01-02", "负责人：xxx 2025-01-02"),
        ("Author: Jane Miller", "Author: xxxx xxxxxx"),
        ("**Author:** Jane Miller **Status:** closed", "**Author:** xxxx xxxxxx **Status:** closed"),
        ("**Owner**: Jane Miller", "**Owner**: xxxx xxxxxx"),
        ("| Reporter | Jane Miller |", "| Reporter | xxxx xxxxxx |"),
        ("Reported by Jane Miller on Monday", "Reported by xxxx xxxxxx on Monday"),
        ("saved to /mnt/nfs/users/jmiller", "saved to /mnt/nfs/users/xxxxxxx"),
        ("call +49 170 1234567 at night", "call xxx xxx xxxxxxx at night"),
        ("电话 13812345678", "电话 xxxxxxxxxxx"),
        ("connect to 10.12.0.7:29500 failed", "connect to xx.xx.x.7:29500 failed"),
        ("host gpu-3.cluster.internal is down", "host xxx-3.xxxxxxx.xxxxxxxx is down"),
        ("thanks @jane-m, that helped", "thanks @xxxxxx, that helped"),
        ("thanks @jane.", "thanks @xxxx."),
        ("**@jane** said", "**@xxxx** said"),
    ],
)
def test_persons_and_machines_are_hidden(text: str, left: str) -> None:
    assert hidden(text) == left
    assert hidden(left) == left


@every_case(
    "text",
    [
        "MASTER_ADDR=127.0.0.1",
        "nvidia-curand-cu12        10.3.5.147",
        "numel 15012345678",
        "the author of KTO says 1 to 5e-6",
        "transformers@v4.46.3",
        "threading.local() and wandb.sdk.internal.sender",
        "x[1::2] + y[::2] at 12:34:56",
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
    assert (left.title, left.blocks) == ("by @xxxx", (code,))


def test_a_handle_in_a_comment_of_code_is_hidden() -> None:
    assert hidden("x = a @b  # ask @jane", code=True) == "x = a @b  # ask @xxxx"


def test_what_was_found_in_one_place_is_hidden_in_the_others() -> None:
    blocks = (
        Block(kind="code", text='File "/home/jane/a.py", line 1\n[jane@gpu-17 a]$ ls'),
        Block(kind="text", text="see /data/jane/out on gpu-17, not gpu-170"),
    )
    left = without_persons(Document(origin="x", title="gpu-17 hangs", blocks=blocks, language="en"))
    assert left.title == "xxx-17 hangs"
    assert left.blocks[1].text == "see /data/xxxx/out on xxx-17, not gpu-170"


def test_the_account_of_an_image_is_no_name_elsewhere() -> None:
    blocks = (Block(kind="text", text="/home/jovyan/x"), Block(kind="text", text="/opt/jovyan/lib and jovyan"))
    left = without_persons(Document(origin="x", title="t", blocks=blocks, language="en"))
    assert [block.text for block in left.blocks] == ["/home/jovyan/x", "/opt/jovyan/lib and jovyan"]


def test_a_secret_that_markup_had_cut_in_two_is_masked() -> None:
    block = Block(kind="code", text='password = "hunter2secret"')
    left = without_persons(Document(origin="x", title="t", blocks=(block,), language="en"))
    assert "hunter2" not in left.blocks[0].text


def test_members_of_a_workspace_are_hidden_and_words_stay() -> None:
    names = called(["Bob Martinez", "bob", "Will", "max", "张伟"])
    text = "Bob's fix: bob will set max_len, Martinez agrees，感谢张伟的帮助"
    assert unnamed(text, names) == "xxx's fix: xxx will set max_len, xxxxxxxx agrees，感谢xx的帮助"


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


@every_case(
    "part",
    ["a-", "a.", "@a", "/home/", "a@", "1.1.", "+49 1", ":1:", "ssh a", "~a", "x.local-", "reported by A ", "节点 "],
)
def test_hostile_repetition_takes_linear_time(part: str) -> None:
    def taken(characters: int) -> float:
        text = part * (characters // len(part))
        times = []
        for _ in range(3):
            started = time.process_time()
            hidden(text, identities_of([text]))
            times.append(time.process_time() - started)
        return min(times)

    # Quadratic growth would take sixteen times as long; a short time says nothing.
    assert taken(40_000) < max(0.2, 8 * taken(10_000))
