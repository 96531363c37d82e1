"""Predicted accelerator memory against peaks that projects published, with the settings they were measured with.

    python -m benchmarks.memory [--rows]

Each row of ``data/memory.json`` is written as a command, read and estimated as a user's would be. ``reserved`` peaks
are those of nvidia-smi or of the allocator and are held against the whole estimate; ``allocated`` ones against what
tensors take. Printed for each source: the median and the 90th percentile of the relative error, and the share of peaks
between the least and the most that the estimate gives. Exit code 1 if a median is above `BUDGET`.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmedic.kb.engine.facts import FactBook
from trainmedic.kb.memory.estimate import GIB, Estimate, Plan, Range, estimate
from trainmedic.kb.memory.plan import plan_of
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

DATA = Path(__file__).parent / "data" / "memory.json"
BUDGET = 0.25
OPTIONAL = {"optimizer": "optim", "deepspeed": "deepspeed", "task": "task_type"}
"""Keys of a row that are written only where it has them, and their options."""


def command(row: Mapping[str, Any]) -> str:
    """The row's settings in the spelling of one framework, whose defaults are those of the measurements."""
    options = {
        "model": row["model"],
        "train_type": "full" if row["tuning"] == "full" else "lora",
        "torch_dtype": "bfloat16",
        "per_device_train_batch_size": row.get("rows", 1),
        "max_length": row["length"],
        "packing": str(row.get("packing", True)).lower(),
        "gradient_checkpointing": str(row.get("checkpointing", True)).lower(),
        "attn_impl": row.get("attention", "flash_attn"),
        "lora_rank": row.get("rank", 8),
        "use_liger_kernel": str(row.get("fused", False)).lower(),
    }
    if row["tuning"] == "qlora":
        options |= {"quant_method": "bnb", "quant_bits": 4}
    options |= {key: row[name] for name, key in OPTIONAL.items() if name in row}
    verb = f"rlhf --rlhf_type {row['algorithm']}" if "algorithm" in row else "sft"
    return f"NPROC_PER_NODE={row.get('ranks', 1)} swift {verb} " + " ".join(
        f"--{key} {value}" for key, value in options.items()
    )


def estimated(row: Mapping[str, Any]) -> Estimate:
    evidence = parse("", [Attachment(name="train.sh", content=command(row) + "\n")])
    plan = plan_of(FactBook(evidence).main)
    assert isinstance(plan, Plan), f"{row['model']}: {plan}"
    return estimate(plan)


def compared(found: Estimate, source: str) -> Range:
    """What a peak is held against: all of it, or what tensors take."""
    whole, other = found.total, found.terms["other"]
    return whole if source.startswith("reserved") else Range(*(a - b for a, b in zip(whole, other, strict=True)))


def main(arguments: Sequence[str]) -> int:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    errors: dict[str, list[float]] = defaultdict(list)
    inside: dict[str, int] = defaultdict(int)
    for row in data["rows"]:
        expected = compared(estimated(row), row["source"])
        measured = row["gib"] * GIB
        error = expected.likely / measured - 1
        errors[row["source"]].append(error)
        inside[row["source"]] += expected.low <= measured <= expected.high
        if "--rows" in arguments:
            shown = f"{expected.low / GIB:.1f} {expected.likely / GIB:.1f} {expected.high / GIB:.1f}"
            print(f"{row['source']:12} {error:+.0%} {row['gib']} GiB, estimated {shown}: {command(row)}")
    print("| source | rows | median error | 90th percentile | median of the sign | within the range |")
    print("|---|---|---|---|---|---|")
    groups = {**errors, "all": [error for listed in errors.values() for error in listed]}
    for name, listed in groups.items():
        sizes = sorted(map(abs, listed))
        within = sum(inside.values()) if name == "all" else inside[name]
        worst = sizes[int(0.9 * (len(sizes) - 1))]
        print(
            f"| {name} | {len(sizes)} | {statistics.median(sizes):.0%} | {worst:.0%} "
            f"| {statistics.median(listed):+.0%} | {within / len(sizes):.0%} |"
        )
    return int(any(statistics.median(map(abs, listed)) > BUDGET for listed in groups.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
