"""What messages of failed allocations, nvidia-smi and memory snapshots say."""

from __future__ import annotations

import pickle

import pytest

from tests.every_case import every_case
from trainmedic.kb.memory.estimate import GIB
from trainmedic.kb.memory.observed import Failure, cards, failures, sites
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

PLAIN = "allocated by PyTorch, and 134.28 MiB is reserved by PyTorch but unallocated."


def read(text: str, name: str = "train.log") -> Evidence:
    return parse("", [Attachment(name=name, content=text)])


def one(text: str) -> Failure:
    (failure,) = failures(read(text))
    return failure


@every_case(
    ("message", "tried", "capacity", "allocated", "idle"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.65 GiB. GPU 2 has a total capacity of "
            "79.19 GiB of which 6.87 GiB is free. Including non-PyTorch memory, this process has 72.31 GiB memory in "
            f"use. Of the allocated memory 70.63 GiB is {PLAIN}",
            *(7.65, 79.19, 70.63, 0.131),
        ),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 172.00 MiB (GPU 0; 79.35 GiB total "
            "capacity; 73.95 GiB already allocated; 12.19 MiB free; 76.80 GiB reserved in total by PyTorch) If \n"
            "reserved memory is >> allocated memory try setting max_split_size_mb",
            *(0.168, 79.35, 73.95, 2.85),
        ),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 294.00 MiB (GPU 0; 7.79 GiB total capacity; 6.27 GiB "
            "already allocated; 61.62 MiB free; 6.88 GiB cached)",
            *(0.287, 7.79, 6.27, 0.61),
        ),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total capacty of "
            f"6.00 GiB of which 0 bytes is free. Of the allocated memory 2.93 GiB is {PLAIN}",
            *(1.7, 6.0, 2.93, 0.131),
        ),
        (
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
            f"63.98 GiB of which 1.02 GiB is free. Of the allocated memory 60.12 GiB is {PLAIN}",
            *(2.0, 63.98, 60.12, 0.131),
        ),
        (
            "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 61.28 GiB total capacity; 58.95 GiB "
            "already allocated; 58.95 GiB current active; 1.20 GiB free; 59.44 GiB reserved in total by PyTorch)",
            *(2.0, 61.28, 58.95, 0.49),
        ),
    ],
)
def test_the_numbers_of_every_form_are_read(
    message: str, tried: float, capacity: float, allocated: float, idle: float
) -> None:
    failure = one(message)
    found = [failure.tried, failure.capacity, failure.allocated, failure.idle]
    assert [(size or 0) / GIB for size in found] == pytest.approx([tried, capacity, allocated, idle], abs=0.006)
    assert failure.span.text.startswith("Tried to allocate")


@every_case(
    "text",
    [
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you "
        "tried to allocate 2147483648 bytes. Error code 12 (Cannot allocate memory)",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
        "It tried to allocate 3 GiB, I think.",
    ],
)
def test_host_memory_a_full_cache_and_hearsay_are_no_failed_allocation(text: str) -> None:
    assert list(failures(read(text))) == []


def test_the_process_that_can_hold_the_tensors_is_the_own_one_and_the_others_are_summed() -> None:
    failure = one(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU 0 has a total capacty of "
        "23.65 GiB of which 93.81 MiB is free. Process 1 has 398.00 MiB memory in use. Process 2 has 10.00 GiB memory "
        "in use. Process 3 has 13.10 GiB memory in use. Of the allocated memory 12.50 GiB is allocated by PyTorch, and "
        "2.30 MiB is reserved by PyTorch but unallocated."
    )
    assert (failure.in_use or 0) / GIB == pytest.approx(13.1)
    assert failure.others / GIB == pytest.approx(10.39, abs=0.01)
    assert (failure.at_hand or 0) / GIB == pytest.approx(13.26, abs=0.01)


def test_a_message_that_every_rank_prints_counts_once() -> None:
    text = f"CUDA out of memory. Tried to allocate 2.00 GiB. Of the allocated memory 60.12 GiB is {PLAIN}"
    assert len(list(failures(read(f"{text}\n{text}\n")))) == 1


@every_case(
    ("text", "expected"),
    [
        (
            "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |\n"
            "| N/A   35C    P0    62W / 400W |  75000MiB / 81920MiB |      0%      Default |\n",
            [(73.24, 80.0)],
        ),
        (
            "index, name, memory.used [MiB], memory.total [MiB]\n0, NVIDIA H100, 1200 MiB, 81559 MiB\n"
            "1, NVIDIA H100, 80200 MiB, 81559 MiB\n",
            [(1.17, 79.65), (78.32, 79.65)],
        ),
    ],
)
def test_nvidia_smi_is_read_as_a_table_and_as_csv(text: str, expected: list[tuple[float, float]]) -> None:
    found = [(card.used / GIB, card.total / GIB) for card in cards(read(text, "smi.txt"))]
    assert [size for card in found for size in card] == pytest.approx([s for e in expected for s in e], abs=0.01)


def snapshot() -> dict[str, object]:
    inside = {"filename": "/env/torch/nn/functional.py", "line": 3, "name": "cross_entropy"}
    outside = {"filename": "/env/trl/trainer.py", "line": 99, "name": "compute_loss"}
    live = {"size": 3 * GIB, "state": "active_allocated", "frames": [inside, outside]}
    idle = {"size": GIB, "state": "inactive", "frames": []}
    return {"segments": [{"device": 0, "total_size": 4 * GIB, "blocks": [live, live, idle]}], "device_traces": []}


def test_a_memory_snapshot_names_the_code_that_made_the_live_tensors() -> None:
    evidence = parse("", [Attachment(name="oom.pickle", content=pickle.dumps(snapshot()))])
    (site,) = sites(evidence)
    assert (site.size / GIB, site.where) == (6, "/env/trl/trainer.py:99 compute_loss")
    assert "memory snapshot" in evidence.receipt.inputs[1].note


@every_case(
    ("content", "read_as"),
    [
        (pickle.dumps(snapshot())[:-40], "is a pickle and was not read"),
        (pickle.dumps({"weights": {1, 2}}), "is a pickle and was not read"),
        (pickle.dumps({"segments": [{"device": "x"}]}), "is a pickle and was not read"),
        (pickle.dumps({"epoch": 1}), "it is not a memory snapshot"),
    ],
)
def test_a_pickle_that_is_no_snapshot_is_named_in_the_receipt(content: bytes, read_as: str) -> None:
    evidence = parse("", [Attachment(name="x.pickle", content=content)])
    assert any(read_as in problem.message for problem in evidence.receipt.problems)
