"""What tools print of hanging ranks, read and judged: formats, short evidence, hostile files."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

from tests.every_case import every_case
from trainmedic.kb.hang.guards import around
from trainmedic.kb.hang.judge import judge, read
from trainmedic.kb.hang.model import Kind, Verdict
from trainmedic.kb.hang.table import table
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.parse.pipeline import parse

SAVE = (("barrier", "torch/distributed/distributed_c10d.py", 4811), ("save_checkpoint", "train.py", 52))
STEP = (("all_reduce", "torch/distributed/distributed_c10d.py", 2810), ("train_step", "train.py", 40))
MAIN = (("main", "train.py", 90), ("<module>", "train.py", 99))
FRAMES = ((*SAVE, *MAIN), (*STEP, ("main", "train.py", 88), MAIN[1]))


def py_spy(pid: int, frames: tuple[tuple[str, str, int], ...]) -> str:
    lines = "\n".join(f"    {name} ({file}:{line})" for name, file, line in frames)
    return f'Process {pid}: python train.py\nThread {pid} (idle): "MainThread"\n{lines}\n'


def py_spy_json(pid: int, frames: tuple[tuple[str, str, int], ...]) -> str:
    found = [{"name": n, "filename": f, "short_filename": f, "line": line} for n, f, line in frames]
    return json.dumps([{"pid": pid, "thread_name": "MainThread", "frames": found}])


def fault(pid: int, frames: tuple[tuple[str, str, int], ...]) -> str:
    lines = "\n".join(f'  File "{file}", line {line} in {name}' for name, file, line in frames)
    return f"Current thread 0x00007f{pid} (most recent call first):\n{lines}\n"


def verdict(**texts: str) -> Verdict | None:
    sources = [Source(name=name, text=text, byte_count=0) for name, text in texts.items()]
    return judge(read(sources), sources)


@every_case("tool", [py_spy, py_spy_json, fault])
def test_a_stack_is_read_whatever_tool_printed_it(tool: object) -> None:
    assert callable(tool)
    found = verdict(rank_0=tool(70, FRAMES[0]), rank_1=tool(71, FRAMES[1]))
    assert found is not None
    assert (found.kind, found.odd, found.waiting) == (Kind.GUARDED, ("0",), ("1",))
    assert found.line is not None
    assert found.line.text == "train.py:52 in save_checkpoint"
    assert found.split is not None
    assert found.split.line == 90


@every_case(
    ("text", "who"),
    [
        ("Rank 0:\n" + py_spy(9, FRAMES[0]) + "Rank 1:\n" + py_spy(8, FRAMES[1]), "0"),
        ("".join(f"[rank{n}]: {line}\n" for n in (0, 1) for line in fault(7, FRAMES[n]).split("\n")), "0"),
        (py_spy(812, FRAMES[0]) + py_spy(813, FRAMES[1]), "pid 812"),
        (py_spy(812, FRAMES[0]).replace("train.py\n", "train.py --local_rank=3\n", 1) + py_spy(813, FRAMES[1]), "3"),
    ],
)
def test_the_rank_is_found_where_it_is_written(text: str, who: str) -> None:
    found = verdict(pasted=text)
    assert found is not None
    assert found.odd == (who,)


def test_lines_of_the_ranks_may_be_mixed_and_a_second_dump_is_one() -> None:
    dumps = [[f"[rank{n}]: {line}" for line in fault(7, FRAMES[n]).split("\n")] for n in (0, 1)]
    mixed = "\n".join(line for pair in zip(*dumps, strict=True) for line in pair)
    found = read([Source(name="job.log", text=f"{mixed}\n{mixed}", byte_count=0)])
    assert [(each.who, each.sample, len(each.frames)) for each in found.threads] == [
        ("0", 0, 4), ("1", 0, 4), ("0", 1, 4), ("1", 1, 4),
    ]  # fmt: skip


def test_ranks_that_moved_between_two_dumps_do_not_hang() -> None:
    text = "".join(f"Rank {n}:\n" + py_spy(n, FRAMES[m]) for n, m in ((0, 1), (1, 0), (0, 0), (1, 1)))
    assert verdict(pasted=text) is None


def recorder(rank: int, *calls: tuple[str, list[int], str], last: int | None = None) -> bytes:
    entries = [
        {
            "collective_seq_id": number,
            "process_group": ("0", "default_pg"),
            "profiling_name": f"nccl:{op}",
            "input_sizes": [size],
            "state": state,
            "is_p2p": False,
        }
        for number, (op, size, state) in enumerate(calls, 1)
    ]
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
    dump = {"version": "2.10", "rank": rank, "pg_config": groups, "pg_status": {}, "entries": entries}
    return pickle.dumps(dump, protocol=2)


DONE, WAITS, AHEAD = (("all_reduce", [4], state) for state in ("completed", "started", "scheduled"))
OTHER, SMALLER = ("all_gather", [4], "started"), ("all_reduce", [2], "started")


@every_case(
    ("dumps", "kind", "odd"),
    [
        (((DONE, WAITS), (DONE, WAITS), (DONE,)), Kind.LATE, ("2",)),
        (((DONE, WAITS), (DONE, OTHER), (DONE, WAITS)), Kind.MISMATCH, ("1",)),
        (((SMALLER,), (WAITS,), (WAITS,)), Kind.MISMATCH, ("0",)),
        (((DONE, WAITS), (DONE, AHEAD), (DONE, WAITS)), Kind.LATE, ("1",)),  # it waits for its own stream
        (((DONE, WAITS), (DONE, WAITS), (DONE, WAITS)), Kind.TRANSPORT, ()),
        (((DONE, DONE), (DONE, DONE), (DONE, DONE)), None, ()),
        (((DONE, WAITS), (DONE, WAITS)), Kind.UNDECIDED, ()),  # the third file was not sent
    ],
)
def test_flight_recorders_are_aligned_by_group_and_number(
    dumps: tuple[tuple[tuple[str, list[int], str], ...], ...], kind: Kind | None, odd: tuple[str, ...]
) -> None:
    files = [Attachment(name=f"nccl_trace_rank_{n}", content=recorder(n, *calls)) for n, calls in enumerate(dumps)]
    evidence = parse("it hangs", files)
    assert all(each.read for each in evidence.receipt.inputs)
    found = judge(read(evidence.sources))
    assert (found.kind if found else None, found.odd if found else ()) == (kind, odd)


class _Runs:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("ran"),))


DEEP: list[object] = []
for _ in range(50):
    DEEP = [DEEP]
WIDE: list[object] = [1] * 10
for _ in range(12):
    WIDE = [WIDE] * 10


@every_case(
    "content",
    [
        pickle.dumps({"entries": [_Runs()]}),
        pickle.dumps({"entries": DEEP}),
        pickle.dumps({"entries": WIDE}),
        pickle.dumps([1]),
        pickle.dumps({"entries": [1]})[:-1],
        b"\x80\x02e.",
        b"\x80\x02.",
        b"\x80\x04\x8c\xff",
    ],
)
def test_a_pickle_that_is_no_dump_is_refused_and_never_run(content: bytes, tmp_path: Path) -> None:
    evidence = parse("", [Attachment(name="nccl_trace_rank_0", content=content)])
    assert not Path("ran").exists()
    assert [problem.code for problem in evidence.receipt.problems] == ["binary"]


RAS = "#0-0 (fa93) MISMATCH\n  Communicator ranks have different collective operation counts\n"
WATCHDOG = "[Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1, "
WATCHDOG += "NumelOut=1, Timeout(ms)=600000) ran for 600061 milliseconds before timing out.\n"
STATUS = "[rank{0}]: [PG ID 0 PG GUID 0(default_pg) Rank {0}] Received a dump signal due to a collective timeout from "
STATUS += "rank 2. Last enqueued NCCL work: {1}, last completed NCCL work: {2}. \n"
DETAIL = "Rank {0} is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType={1}, TensorShape=[1]), "


@every_case(
    ("text", "kind", "odd"),
    [
        (RAS + "  25 ranks have launched up to operation 6650\n  1 rank has launched up to operation 6649\n"
         "  Rank 8 -- GPU 0 managed by process 1210 on node 10.0.0.1\n", Kind.LATE, ("8",)),
        (RAS + "  30 ranks have launched up to operation 640\n  2 ranks have launched up to operation 641\n"
         "  Rank 12 -- GPU 4 managed by process 3 on node 10.0.0.1\n", Kind.MISMATCH, ("12",)),
        (WATCHDOG.format(2, 137) + STATUS.format(2, 137, 136) + STATUS.format(5, 136, 136), Kind.LATE, ("5",)),
        (WATCHDOG.format(0, 9) + WATCHDOG.format(1, 9) + WATCHDOG.format(3, 9), Kind.LATE, ("2",)),
        (WATCHDOG.format(0, 9) + WATCHDOG.format(1, 9) + WATCHDOG.format(2, 4), Kind.MISMATCH, ("2",)),
        (WATCHDOG.format(7, 9), Kind.UNDECIDED, ()),
        (WATCHDOG.format(0, 9) + WATCHDOG.format(1, 9), Kind.UNDECIDED, ()),  # of how many?
        (DETAIL.format(0, "BARRIER") + DETAIL.format(1, "ALLREDUCE"), Kind.MISMATCH, ("0", "1")),
        ("  rank      : 2 (local_rank: 2)\n  exitcode  : -9 (pid: 3)\n" + WATCHDOG.format(0, 9) + WATCHDOG.format(1, 9),
         Kind.GONE, ("2",)),
    ],
)  # fmt: skip
def test_reports_of_the_runtime_are_read(text: str, kind: Kind, odd: tuple[str, ...]) -> None:
    found = verdict(log=text)
    assert found is not None
    assert (found.kind, found.odd) == (kind, odd)


def test_short_evidence_asks_for_the_ranks_that_would_decide() -> None:
    found = verdict(
        log="=== rank 0 of 4, process 7 ===\n" + py_spy(7, FRAMES[1]) + "=== rank 1 of 4 ===\n" + py_spy(8, FRAMES[1])
    )
    assert found is not None
    assert (found.kind, found.wanted) == (Kind.UNDECIDED, ("2", "3"))


def test_the_table_shows_ranks_by_collectives() -> None:
    text = "".join(WATCHDOG.format(rank, 9) for rank in (0, 1, 3)) + STATUS.format(2, 8, 8)
    shown = table(read([Source(name="log", text=text, byte_count=0)]))
    assert shown.split("\n") == [
        "rank | group 0(default_pg) #9",
        "0    | ALLREDUCE 1 waits",
        "1    | ALLREDUCE 1 waits",
        "2    | not reached",
        "3    | ALLREDUCE 1 waits",
    ]


LEAVES_EARLY = """def save_checkpoint():
    if rank != 0:
        return
    dist.barrier()


def main():
    train_step()
    save_checkpoint()
"""


def test_a_rank_that_left_before_the_line_stands_under_a_condition() -> None:
    source = Source(name="train.py", text=LEAVES_EARLY, byte_count=0)
    assert around([source], "train.py", 4).conditions == ("not (rank != 0)",)
    assert around([source], "train.py", 9).conditions == ()


def test_that_all_ranks_wait_alike_is_sure_only_where_more_than_their_time_outs_shows_it() -> None:
    waits = "".join(WATCHDOG.format(rank, 9) for rank in (0, 1))
    stacks = "".join(f"Rank {rank}:\n" + py_spy(rank, FRAMES[1]) for rank in (0, 1))
    world = Source(name="x.log", text=waits, byte_count=0)
    seen = [judge(read([world, Source(name="s.txt", text=text, byte_count=0)], 2)) for text in ("", stacks)]
    assert [(each.kind, each.sure) for each in seen if each] == [(Kind.TRANSPORT, False), (Kind.TRANSPORT, True)]


def test_groups_that_nobody_names_are_not_compared() -> None:
    far = verdict(log=WATCHDOG.format(0, 5000) + WATCHDOG.format(1, 12))
    assert far is not None
    assert (far.kind, far.wanted) == (Kind.UNDECIDED, ("0", "1"))
