"""Training scripts that hang in a known way: which rank is odd, and in which line, is drawn by a seed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.hang.judge import judge, read
from trainmedic.kb.hang.model import Kind, Verdict
from trainmedic.kb.parse.source import Limits
from trainmedic.kb.parse.text.intake import load
from trainmedic.ui.doctor.stacks import Collected, Rank, collect

_HEAD = """
import faulthandler, os, signal, socket, time
import torch, torch.distributed as dist
faulthandler.register(signal.SIGUSR1)
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
def sync_gradients():
    dist.all_reduce(torch.ones(64))
"""
_BODIES = {
    Kind.GUARDED: """
def {helper}(step):
    state = torch.ones(3)
    {collective}  # deepest
def main():
    for step in range(10):
        sync_gradients()
        {pad}
        if {guard}:
            {helper}(step)  # split
""",
    Kind.UNEVEN: """
def batches():
    yield from range({few} if RANK == {odd} else 9)
def {after}():
    {collective}  # deepest
def main():
    for batch in batches():
        loss = batch * 2
        {pad}
        sync_gradients()
    {after}()  # split
""",
    Kind.MODALITY: """
def {tower}(pixel_values):
    dist.all_gather([torch.ones(5)] * WORLD, torch.ones(5))
    return pixel_values
def language_layers(hidden):
    {collective}  # deepest
def forward(batch):
    hidden = batch["text"]
    {pad}
    if batch["{images}"] is not None:
        hidden = hidden + {tower}(batch["{images}"])
    language_layers(hidden)  # split
def main():
    for step in range(10):
        forward({{"text": 1, "{images}": None if RANK == {odd} and step == {few} else 1}})
        sync_gradients()
""",
    Kind.BRANCH: """
def {expert}(tokens):
    dist.all_gather([torch.ones(5)] * WORLD, torch.ones(5))
    return tokens
def layers(hidden):
    {collective}  # deepest
def forward(tokens):
    {pad}
    if tokens > {few}:
        tokens = {expert}(tokens)
    layers(tokens)  # split
def main():
    for step in range(10):
        forward(0 if RANK == {odd} and step == {few} else 99)
        sync_gradients()
""",
    Kind.MISMATCH: """
def sync_count():
    {collective}  # deepest
def sync_norm():
    dist.all_gather([torch.ones(7)] * WORLD, torch.ones(7))
def main():
    steps = [sync_norm, sync_count]
    {pad}
    steps = steps[::-1] if RANK == {odd} else steps
    sync_gradients()
    for each in steps:
        each()  # split
""",
    Kind.LATE: """
def {work}(index):
    {slow}  # deepest
    return index
def main():
    for step in range(10):
        {pad}
        if step == {few}:
            batch = {work}(step) if RANK == {odd} else step  # split
        sync_gradients()
""",
    Kind.GONE: """
def main():
    {pad}
    {lost_before}
    for step in range(10):
        sync_gradients()
        {lost_within}
""",
    Kind.TRANSPORT: """
def main():
    sync_gradients()
    {pad}
    if RANK == {odd}:
        ends = socket.socketpair()
        for name in os.listdir("/proc/self/fd"):
            is_socket = "socket" in os.path.realpath("/proc/self/fd/" + name)
            if is_socket and int(name) not in (ends[0].fileno(), ends[1].fileno()):
                os.dup(int(name))
                os.dup2(ends[0].fileno(), int(name))
    time.sleep(0.3)
    sync_gradients()
    time.sleep(99)
""",
}
_TAIL = """
{before}
dist.init_process_group("gloo")
main()
"""
_PADS = ("pass", "scale = 1.0", "lr = 3e-4", "pass\n{i}pass", "epoch = 0\n{i}seed = 7\n{i}pass")
HEALTHY = {
    "all compute": """
def main():
    rows = torch.ones(400, 400)
    while True:
        rows = (rows @ rows).clamp(max=1.0)
""",
    "slow but going on": """
def step_one():
    dist.all_reduce(torch.ones(8))
def step_two():
    time.sleep(0.4)
def main():
    while True:
        step_two()
        step_one()
        step_two()
        sync_gradients()
""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A script, and what the verdict must say of it. Lines are 0 where none is to be named."""

    kind: Kind | None
    script: str
    world: int
    odd: int = 0
    deepest: int = 0
    split: int = 0


def scenario(kind: Kind, seed: int) -> Scenario:
    """The script of a mechanism with all else drawn."""
    draw = random.Random(f"{kind} {seed}")
    world = draw.randint(3 if kind is Kind.MISMATCH else 2, 4)
    odd = draw.randrange(world)
    before = draw.random() < 0.5
    after = kind in (Kind.GUARDED, Kind.UNEVEN)
    kill = f"os.kill(os.getpid(), signal.{{}}) if RANK == {odd} else None"
    helper = draw.choice(("save_checkpoint", "evaluate", "log_metrics", "export_model", "push_to_hub"))
    text = _BODIES[kind].format(
        helper=helper,
        guard=draw.choice((f"RANK == {odd}", f"dist.get_rank() == {odd} and step == 2")),
        collective=draw.choice(
            ("dist.barrier()", "dist.all_gather([torch.ones(2)] * WORLD, torch.ones(2))")[: 1 + after]
        ),
        few=draw.randint(1, 6),
        odd=odd,
        after=draw.choice(("finish_epoch", "evaluate", "collect_metrics", "wrap_up")),
        tower=draw.choice(("vision_tower", "encode_images", "audio_encoder")),
        images=draw.choice(("pixel_values", "images", "audio")),
        expert=draw.choice(("run_expert", "optional_adapter", "aux_head")),
        work=draw.choice(("load_batch", "__getitem__", "compute_reward", "tokenize")),
        slow=draw.choice(("time.sleep(99)", "sum(range(10 ** 10))", "open(FIFO).read()")),
        lost_before="pass",
        lost_within="pass" if before else kill.format("SIGSTOP"),
        pad=draw.choice(_PADS).replace("{i}", _indent(_BODIES[kind])),
    )
    head = _HEAD.replace("\ndef sync", "\n" * draw.randint(1, 6) + "def sync") + "FIFO = __file_fifo__\n"
    early = kill.format("SIGKILL") if kind is Kind.GONE and before else ""
    script = head + text + _TAIL.format(before=early)
    lines = script.split("\n")
    at = {
        mark: next((n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}")), 0)
        for mark in ("deepest", "split")
    }
    return Scenario(
        kind=kind, script=script.replace("# deepest", "").replace("# split", ""), world=world, odd=odd, **at
    )


def _indent(body: str) -> str:
    line = next(line for line in body.split("\n") if line.strip() == "{pad}")
    return line[: line.index("{")]


class Ranks:
    """Runs scenarios; the ranks of several at the same time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hang.ranks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self._started: list[int] = []

    def start(self, name: str, scenario: Scenario, *, record: bool = False) -> tuple[Rank, ...]:
        """Starts the ranks of a scenario, with a flight recorder or without; they hang after a moment."""
        path = self.folder / f"{name}.py"
        fifo = self.folder / f"{name}.fifo"
        os.mkfifo(fifo)
        path.write_text(scenario.script.replace("__file_fifo__", repr(str(fifo))))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        job = {
            "script": str(path),
            "world": scenario.world,
            "port": port,
            "log": str(self.folder / name),
            "record": record,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        pids = json.loads(self._process.stdout.readline())
        self._started += pids
        trace = f"{self.folder / name}.trace_"
        return tuple(
            Rank(pid=pid, rank=number, world=scenario.world, script=path, recorder=trace)
            for number, pid in enumerate(pids)
        )

    def stop(self, ranks: tuple[Rank, ...]) -> None:
        for rank in ranks:
            with suppress(ProcessLookupError):
                os.kill(rank.pid, signal.SIGKILL)

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self._started:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.communicate()


def healthy(name: str) -> Scenario:
    return Scenario(
        kind=None, script=_HEAD + "FIFO = __file_fifo__\n" + HEALTHY[name] + _TAIL.format(before=""), world=2
    )


def settle(seconds: float) -> None:
    """Ranks connect and come to their hang."""
    time.sleep(seconds)


def dumped(ranks: tuple[Rank, ...]) -> Collected:
    return collect(ranks, seconds=30, between=0.3)


def told(collected: Collected, *, scripts: bool = True) -> Verdict | None:
    """The verdict over what was collected, with or without the scripts."""
    files = [file for file in collected.files if scripts or not file.name.endswith(".py")]
    sources = [load(file.name, file.content, Limits(), Limits().total).source for file in files]
    return judge(read(sources), sources)


def kinds() -> Iterator[Kind]:
    yield from (kind for kind in Kind if kind is not Kind.UNDECIDED)
