"""Names of people and machines disappear from what leaves, and what the rules and the reader need stays."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.identities import NOBODY, Identities, identities_of, mask_identities, masked_values

PEOPLE = (
    "/home/{}/run/train.py", "/data/home/{}/x", "/Users/{}/x", "hdfs://nn/user/{}/x", "C:\\Users\\{}\\x",
    '"C:\\\\Users\\\\{}\\\\x"', "cd ~{}/x", "export USER={}", '"username": "{}"', "({}@node-1:~$ ls",
    "[{}@node-1 run]$ ls", "scp {}@node-1:/data .", "--output_dir=/home/{}", "ssh {}@node-1",
    "ssh -p 2222 -i key {}@node-1 nvidia-smi", "rsync -av run {}@node-1:run", "{}@node-1's password:",
    "wandb: Currently logged in as: {} (corp). Use", "wandb: Currently logged in as: \x1b[33m{}\x1b[0m. Use",
    "Logged in as {}", "wandb: View run at https://wandb.ai/{}/grpo/runs/1a2b3c4d", "(https://wandb.ai/{}/grpo)",
    "https://swanlab.cn/@{}/p/runs/x", "Author: {} <***@x.org>", "Signed-off-by: {} <***@x.org>",
    "-rw-r--r-- 1 {} root 100 Jan 1 a.txt", "drwxrwxr-x+ 2 root {} 4096 Jan 1 run",
    "  JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n 123_4 gpu train {} R 1:00 2 gpua[17-18]\n",
    "JobID    User    State\n-------- ------- -----\n12       {}   FAILED\n",
    "USER  PID %CPU %MEM COMMAND\n{}  12345  99.0  1.0 python train.py\n", "UID PID PPID C CMD\n{} 12 1 0 python\n",
    "    PID USER PR NI VIRT\n  12345 {} 20 0 9g\n",
)  # fmt: skip
MACHINES = (
    "MASTER_ADDR={}", "--master_addr {}", '"hostname": "{}"', "--rdzv_endpoint={}:29500", "host: {}",
    "http://{}:8000/v1", "tcp://{}:29500", "{}:4321:4388 [0] NCCL INFO x", "(base) alice@{}:/data$ ls",
    "#SBATCH --nodelist={}", "connect to [{}.corp.example.com]:29500", "***@{}.example.com",
    "cannot resolve {}.cluster.local", "{}.acme.internal", "ssh alice@{}", "alice@{}'s password:", "{} slots=8",
    "{0}: Traceback (most recent call last):\n{0}:   File \"a.py\", line 1",
    "{0}: [2025-01-01 10:00:00] a\n{0}: [2025-01-01 10:00:01] b",
    "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n 1 gpu train bob R 1:00 1 {}",
)  # fmt: skip
ADDRESSES = (
    "eth0:{}<0>", "(TaskRunner pid=1, ip={})", "{} slots=8", "connect to {}:29500", "ssh {}", "MASTER_ADDR={}",
    "http://{}/v1",
)  # fmt: skip
CLEAN = """
MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 0.0.0.0:8000 localhost:6006 http://localhost:8000
nvidia-curand-cu12 10.3.5.147
nvidia-curand-cu12==10.3.5.147  tensorrt_cu12 10.9.0.34  version 10.2.3.4
https://github.com/OpenRLHF/OpenRLHF/issues/1 huggingface.co/Qwen https://hf-mirror.com docs.pytorch.org
torch.nn.functional.cross_entropy threading.local tf.io model.net a.b.io actor.net.0.weight obj.com(1)
/home/user/x /home/$USER/x /home/{user}/x /home/<you>/x /root/x ~/x ~5/6 C:\\Users\\Public\\x /home/../x
host: str = "localhost"  host = args.host  server: http  node: 4  nodes: 8  node rank 2  host memory
USER: hello there  username: user  git@github.com:a/b.git trl@v0.9.6 @torch.no_grad()
s3://bucket/x file:///etc/x {'loss': 0.69, 'lr': 1e-5} 10.123.1 2024:10:11 std::vector fp16::x
root@localhost:~$ ls  localhost:1:2 [0] NCCL INFO x
NCCL INFO comm 0x1 rank 3 nranks 8 [0] NCCL INFO x
wandb.ai/site/articles/x https://wandb.ai/wandb/fully-connected/runs/1
https://wandb.ai/team/reports/Some--Vmlld https://docs.wandb.ai/guides/track
rank0: Traceback  gpu-0: [2025-01-01  node-3: Traceback  Author: someone  slots=8
worker-1 slots=2
Author: `Someone Else <https://github.com/someone>`_
localhost slots=8  a: b slots=8  [1:2]:3  [10:20:30]:5  [::1]:80
use ssh, then pip install trl@v0.9.6; ssh git@github.com; -rw-r--r-- 1 root root 10 Jan 1 a.txt; -rw-rw-r--
the PID of this process, not logged in as root
v1.10.2.31 cu12.10.2.3:80 layers.10.2.31.17 1234.10.2.3
"""


@every_case("context", PEOPLE)
def test_the_name_of_a_person_is_masked(context: str) -> None:
    assert mask_identities(context.format("alice")).count("xxxxx") == 1
    assert "alice" not in mask_identities(context.format("alice"))


@every_case("context", MACHINES)
def test_the_name_of_a_machine_is_masked_and_its_number_stays(context: str) -> None:
    masked = mask_identities(context.format("node-17"))
    assert "node-17" not in masked
    assert "xxxx-17" in masked
    assert "corp" not in masked


@every_case("context", ADDRESSES)
@every_case(
    ("address", "masked"),
    [("10.2.31.17", "xx.x.xx.17"), ("192.168.0.5", "xxx.xxx.x.5"), ("172.20.1.2", "xxx.xx.x.2")],
)
def test_the_address_of_a_machine_keeps_its_last_number(context: str, address: str, masked: str) -> None:
    assert mask_identities(context.format(address)) == context.format(masked)


def test_other_forms_of_an_address_are_masked() -> None:
    assert mask_identities("203.0.113.9:443") == "xxx.x.xxx.9:443"
    assert mask_identities("fe80::1ff:fe23:890a") == "xxxx::xxx:xxxx:890a"
    assert mask_identities("fd00:12::7") == "xxxx:xx::7"
    assert mask_identities("on ip-10-1-2-3 now") == "on ip-xx-x-x-3 now"
    assert mask_identities("tcp://[2400:3200:1600::7a]:29500") == "tcp://[xxxx:xxxx:xxxx::7a]:29500"


@every_case("line", CLEAN.strip().splitlines())
def test_a_line_without_names_is_left_alone(line: str) -> None:
    assert mask_identities(line) == line


def test_the_name_of_an_account_ends_before_the_end_of_its_sentence() -> None:
    text = "wandb: Currently logged in as: alice-7 (corp). Use `wandb login`"
    assert mask_identities(text) == text.replace("alice-7", "xxxxxxx").replace("corp", "xxxx")
    assert mask_identities("logged in as bob. Use") == "logged in as xxx. Use"


def test_a_user_name_of_two_words_is_masked_to_the_end_of_the_folder() -> None:
    assert mask_identities("C:\\Users\\Alice Smith\\run") == "C:\\Users\\xxxxxxxxxxx\\run"


def test_what_one_text_tells_is_masked_in_the_others() -> None:
    known = identities_of(["MASTER_ADDR=node-17 /home/alice/x", "ssh bob@gpu03:/data"])
    assert known == Identities(hosts=("node-17", "gpu03"), users=("alice", "bob"))
    assert mask_identities("ssh node-17; ls /scratch/alice/x", known) == "ssh xxxx-17; ls /scratch/xxxxx/x"
    assert mask_identities("alice in wonderland, node-170", known) == "alice in wonderland, node-170"


def test_lines_that_begin_with_a_role_in_the_run_do_not_begin_with_a_machine() -> None:
    for name in ("rank0", "worker-1", "GPU7", "layer.12", "Traceback", "127.0.0.1"):
        text = f"{name}: Traceback (most recent call last):\n{name}: [2025-01-01 x\n"
        assert mask_identities(text) == text


def test_a_listing_ends_where_its_numbers_do() -> None:
    text = "JOBID NAME USER\n1 train alice\n2 x root\n3 x 1000\nno job more\n4 a bob\nUSER PID\nalice 1\n9\nbob 2\n"
    assert mask_identities(text) == text.replace("alice", "xxxxx")
    jobs = "JOBID USER NODELIST(REASON)\n1 alice gpua17\n2 alice (Priority)\n3 alice\n4 alice local\n"
    assert mask_identities(jobs) == jobs.replace("alice", "xxxxx").replace("gpua17", "xxxx17")


def test_the_owner_of_a_linked_run_is_not_looked_for_elsewhere() -> None:
    text = "https://wandb.ai/openlab/grpo/runs/1a2b https://github.com/openlab/grpo"
    assert identities_of([text]) == NOBODY
    assert mask_identities(text) == text.replace("ai/openlab", "ai/xxxxxxx")


def test_words_are_not_learned_as_names() -> None:
    assert identities_of(["host: a.b MASTER_ADDR=main hostname: 10.1.2.3 /home/al/x"]) == NOBODY


def test_the_texts_of_a_nested_value_are_masked_but_for_the_fields_that_are_kept() -> None:
    value = {"url": "http://node-17/x", "list": ["/home/alice/x", 3, None], "deep": {"a": ("ip=10.1.2.3",)}}
    assert masked_values(value, keep=frozenset(("url",))) == {
        "url": "http://node-17/x",
        "list": ["/home/xxxxx/x", 3, None],
        "deep": {"a": ["ip=xx.x.x.3"]},
    }


@given(st.lists(st.sampled_from([*PEOPLE, *MACHINES, *ADDRESSES, "\n", " ", "x: 1", "@", "://", "\\"]), max_size=8))
def test_length_and_line_breaks_stay_and_masking_again_changes_nothing(parts: list[str]) -> None:
    text = "\n".join(part.format("alice-7") if "{}" in part else part for part in parts)
    known = identities_of([text])
    once = mask_identities(text, known)
    assert len(once) == len(text)
    assert [i for i, c in enumerate(once) if c in "\r\n"] == [i for i, c in enumerate(text) if c in "\r\n"]
    assert mask_identities(once, known) == once
    assert mask_identities(once, identities_of([once])) == once


@given(st.text(max_size=200))
def test_any_text_is_masked_in_place(text: str) -> None:
    assert len(mask_identities(text, identities_of([text]))) == len(text)


@pytest.mark.slow
@every_case(
    "hostile", [
        "a@", "://a", "host=", "/home/", "a.com ", "10.1.", "user_name ", "x:1:1 [NCCL", "fe80::", "host   ",
        "ssh -a ", "scp a a@b ", "n1: Traceback ", "n1: [2025-\n", "JOBID USER\n1 a\n", "-rw-r--r-- 1 a ",
        "wandb.ai/a", "Author: a ", "a slots", "[1:1", "]:1 [a::", "logged in as ",
    ]
)  # fmt: skip
def test_hostile_repetition_takes_linear_time(hostile: str) -> None:
    def spent(size: int) -> float:
        text = hostile * (size // len(hostile))
        started = time.thread_time()
        mask_identities(text, identities_of([text]))
        return time.thread_time() - started

    spent(1000)
    assert spent(200_000) < 12 * max(spent(50_000), 0.002)
