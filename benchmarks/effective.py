"""Compare what is said of defaults with the real configuration classes, parsers and files of many releases.

    python -m benchmarks.effective FOLDER [--site FOLDER] [--only PACKAGE …] [--show N]

Needs the network once: releases are fetched into FOLDER (a data folder of trainmedic), unpacked there, and imported in
processes of their own, never in this one. ``--site`` is a folder of ``pip install --no-deps --target FOLDER``:
hydra-core, omegaconf and antlr4-python3-runtime for verl, modelscope for ms-swift, colorama for axolotl. A default
counts as equal, as *said to be computed* (no value is stated), or as wrong, missing or extra: all of these are listed,
and so is what cannot be imported here, which says nothing. The second figure is of instances: the values of fields
after ``__post_init__`` against those that `kb.sources.initialising` works out. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.frameworks import catalogue, tables
from trainmedic.kb.frameworks.defaults import Declared, declared
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.sources.derived import Derived
from trainmedic.kb.sources.index import index_of_pip
from trainmedic.kb.sources.initialising import UNKNOWN, initialised
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import SourceTree

PROBE = Path(__file__).with_name("effective_probe.py")
SECONDS = 300
AROUND = ("datasets", "deepspeed", "ray", "vllm", "flash_attn", "sentencepiece", "peft", "trl", "bitsandbytes", "wandb")
STUBS = (
    *("huggingface_hub", "tokenizers", "datasets", "deepspeed", "ray", "vllm", "flash_attn", "sentencepiece", "peft"),
    *("bitsandbytes", "wandb", "loguru", "addict", "modelscope", "colorama", "fire", "axolotl_contribs_lgpl", "pynvml"),
)
_SWIFT = (
    *AROUND,
    *("importlib_metadata", "fire", "oss2", "qwen_vl_utils", "decord", "binpacking", "tensorboard", "matplotlib"),
    *("zstandard", "json_repair", "tiktoken", "cpm_kernels", "einops", "openai", "nltk", "rouge", "dacite", "jieba"),
    *("sklearn", "pandas", "scipy", "lmdeploy", "sglang", "evalscope", "gradio", "uvicorn"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Check:
    """Something of a framework that can be imported: ``asked`` is what the probe is told, ``owner`` whose options."""

    owner: str
    asked: Mapping[str, Any]
    prefix: str = ""
    stubs: Sequence[Sequence[str]] = ((), STUBS)
    """Tried one after the other."""
    bare: Sequence[str] = ()


def _class(module: str, name: str, owner: str = "", **more: Any) -> Check:
    given = [{**more.pop("given", {}), **extra} for extra in ({}, {"bf16": False}, {"bf16": False, "use_cpu": True})]
    asked = {"kind": "class", "module": module, "name": name, "given": given if more.pop("make", True) else []}
    return Check(owner=owner or name, asked=asked, **more)


def _trl(name: str) -> Check:
    stem = name.removesuffix("Config").lower()
    given = {"output_dir": "out", "report_to": "none"} if name != "ModelConfig" else {}
    places = f"trl.trainer.{stem}_config|trl.experimental.{stem}.{stem}_config"
    return _class(places, name, given=given, bare=("trl", "trl.trainer", "trl.experimental"))


_HF = {"output_dir": "out", "report_to": "none"}
_ZERO = "deepspeed.runtime.zero"
_DEEPSPEED = (
    "torch",
    "deepspeed.accelerator",
    "deepspeed.utils",
    "deepspeed.comm",
    "numpy",
    "hjson",
    "psutil",
    "cpuinfo",
)
_PEFT = ("torch", "transformers", "accelerate", "huggingface_hub", "safetensors", "tqdm", "bitsandbytes")
_AXOLOTL = (
    *AROUND,
    *("axolotl_contribs_lgpl", "pynvml", "addict", "art", "kernels", "mistral_common", "liger_kernel", "fastcore"),
    *("optimum", "axolotl.utils.distributed", "axolotl.loaders", "axolotl.utils.models"),
)
_AROUND = ("deepspeed", "deepspeed.runtime", "deepspeed.runtime.zero")


def _section(module: str, name: str, prefix: str) -> Check:
    return _class(module, name, "config", prefix=prefix, make=False, bare=_AROUND, stubs=(_DEEPSPEED, ()))


CHECKS: Mapping[str, tuple[Check, ...]] = {
    "trl": tuple(map(_trl, ("SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "RewardConfig", "ModelConfig"))),
    "transformers": (
        _class("transformers.training_args", "TrainingArguments", given=_HF),
        _class("transformers.training_args_seq2seq", "Seq2SeqTrainingArguments", given=_HF),
    ),
    "peft": (_class("peft.tuners.lora.config", "LoraConfig", stubs=(_PEFT, ())),),
    "accelerate": (
        Check(
            owner="launch",
            asked={"kind": "parser", "module": "accelerate.commands.launch", "function": "launch_command_parser"},
        ),
    ),
    "openrlhf": tuple(
        Check(
            owner=name,
            asked={"kind": "parser", "module": f"openrlhf.cli.{name}"},
            stubs=(
                (
                    *STUBS,
                    "openrlhf.trainer",
                    "openrlhf.datasets",
                    "openrlhf.models",
                    "openrlhf.utils",
                    "torch",
                    "transformers",
                ),
            ),
        )
        for name in ("train_sft", "train_dpo", "train_rm", "train_ppo_ray")
    ),
    "verl": tuple(
        Check(owner=name, asked={"kind": "hydra", "folder": "verl/trainer/config", "name": name})
        for name in ("ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "sft_trainer_engine")
    ),
    "ms-swift": (
        _class(
            "swift.llm.argument.train_args|swift.arguments.sft_args|swift.llm.utils.argument",
            "TrainArguments|SftArguments",
            "sft",
            make=False,
            stubs=(_SWIFT,),
        ),
    ),
    "llamafactory": tuple(
        _class(f"llamafactory.hparams.{module}", name, given=given, bare=("llamafactory", "llamafactory.hparams"))
        for module, name, given in (
            ("model_args", "ModelArguments", {"model_name_or_path": "m"}),
            ("data_args", "DataArguments", {}),
            ("finetuning_args", "FinetuningArguments", {}),
            ("generating_args", "GeneratingArguments", {}),
            ("training_args", "TrainingArguments", _HF),
        )
    ),
    "axolotl": (
        _class(
            "axolotl.utils.schemas.config|axolotl.utils.config.models.input.v0_4_1",
            "AxolotlInputConfig",
            "top",
            make=False,
            stubs=(_AXOLOTL,),
        ),
    ),
    "deepspeed": (
        _section(f"{_ZERO}.config", "DeepSpeedZeroConfig", "zero_optimization."),
        _section(f"{_ZERO}.offload_config", "DeepSpeedZeroOffloadParamConfig", "zero_optimization.offload_param."),
        _section(
            f"{_ZERO}.offload_config", "DeepSpeedZeroOffloadOptimizerConfig", "zero_optimization.offload_optimizer."
        ),
        _section("deepspeed.runtime.precision_config", "DeepSpeedFP16Config", "fp16."),
        _section("deepspeed.runtime.precision_config", "DeepSpeedBF16Config", "bf16."),
    ),
}
RELEASES: Mapping[str, str] = {
    "trl": "0.9.6 0.12.2 0.15.2 0.18.2 0.21.0 0.23.1 0.26.2 1.2.0 1.9.0 1.16.0",
    "transformers": "4.36.2 4.41.2 4.44.2 4.46.3 4.49.0 4.52.4 4.57.1 5.3.0 5.23.0 5.24.0",
    "peft": "0.7.1 0.10.0 0.12.0 0.13.2 0.15.2 0.16.0 0.17.1 0.18.1 0.20.0 0.21.2",
    "accelerate": "0.27.2 0.30.1 0.34.2 1.0.1 1.2.1 1.7.0 1.10.1 1.12.0 1.14.0 1.15.0",
    "openrlhf": "0.5.9 0.6.4 0.7.4 0.8.4 0.8.11 0.9.2 0.9.8 0.10.1.post2 0.11.0 0.11.2",
    "verl": "0.2 0.3.0.post1 0.4.1 0.5.0 0.6.1 0.7.0 0.7.1 0.8.0 0.9.0 0.9.1",
    "ms-swift": "2.6.1 3.0.2 3.2.2 3.5.3 3.8.3 3.11.3 4.1.0 4.3.0 4.5.2 4.6.0",
    "llamafactory": "0.7.1 0.8.0 0.8.1 0.8.3 0.9.0 0.9.1 0.9.2 0.9.3 0.9.4 0.9.5",
    "axolotl": "0.5.2 0.6.0 0.8.1 0.9.2 0.11.0 0.12.2 0.13.1 0.16.1 0.17.0 0.18.0",
    "deepspeed": "0.12.6 0.13.5 0.14.5 0.15.4 0.16.9 0.17.6 0.18.9 0.19.2 0.19.5 0.19.8",
}
TRANSFORMERS: Mapping[str, str] = {
    **{"0.9.6": "4.41.2", "0.12.2": "4.46.3", "0.15.2": "4.49.0", "0.18.2": "4.52.4", "0.21.0": "4.57.1"},
    **{"0.23.1": "4.57.1", "0.26.2": "4.57.1", "1.2.0": "5.3.0", "1.9.0": "5.23.0", "1.16.0": "5.24.0"},
}
"""The release of transformers that one of TRL is tried with; others take the one that their own pins allow."""
BESIDE = {
    **{"ms-swift": "4.57.1", "llamafactory": "4.52.4", "axolotl": "4.57.1", "peft": "4.57.1"},
    **{"axolotl 0.5.2": "4.46.3", "axolotl 0.6.0": "4.46.3", "ms-swift 2.6.1": "4.46.3"},
}


@dataclass
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def add(self, kind: str, line: str = "") -> None:
        self.counts[kind] += 1
        if line:
            self.lines.append(f"{kind}: {line}")


def unpacked(tree: SourceTree, folder: Path) -> Path:
    place = folder / "code" / f"{tree.package}-{tree.version}"
    if not place.is_dir():
        for path in tree.paths():
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tree.read(path))
    return place


def probe(
    checks: Sequence[Check], trees: Sequence[SourceTree], folder: Path, site: Path | None
) -> Mapping[Check, dict[str, Any] | str]:
    """What the real things hold; or why one cannot be imported here."""
    places = [str(unpacked(tree, folder)) for tree in trees] + ([str(site)] if site else [])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(places),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
    }
    names = {tree.package for tree in trees}
    found: dict[Check, dict[str, Any] | str] = {}
    for turn in range(2):
        left = [check for check in checks if isinstance(found.get(check, ""), str)]
        if not left:
            break
        stubs = left[0].stubs[min(turn, len(left[0].stubs) - 1)]
        asked = {
            "asked": [dict(check.asked) for check in left],
            "bare": left[0].bare,
            "stubs": [name for name in stubs if name not in names],
            "versions": {tree.package: tree.version for tree in trees},
        }
        try:
            done = subprocess.run(
                [sys.executable, str(PROBE), json.dumps(asked)],
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
                cwd=folder,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            found |= dict.fromkeys(left, f"not done in {SECONDS} s")
            continue
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1][:200]
        answers = json.loads(done.stdout) if done.stdout else [reason] * len(left)
        found |= dict(zip(left, answers, strict=True))
    return found


def alike(said: object, real: object) -> bool:
    if isinstance(said, tuple):
        said = list(said)
    if isinstance(said, list) and isinstance(real, list):
        return len(said) == len(real) and all(map(alike, said, real))
    if isinstance(said, bool) != isinstance(real, bool):
        return False
    return said == real or (isinstance(said, str) and isinstance(real, float) and said == str(real))


def defaults(check: Check, said: Mapping[str, Declared], real: Mapping[str, Any], tally: Tally, label: str) -> None:
    for name, value in real.items():
        if name.startswith("_"):
            continue
        # A section takes the plain name of an alias as well.
        alias = check.prefix + profiles()[label.split()[0]].alias_prefix + name
        known = said.get(check.prefix + name) or said.get(alias)
        if known is None:
            tally.add("missing", f"{label} {name} = {value!r}")
        elif known.why == "computed":
            tally.add("equal" if known.computed == value else "computed")
        elif known.why:
            same = known.why == "required" and value in ("<required>", "???")
            tally.add("equal" if same else "wrong", "" if same else f"{label} {name}: {known.why}, is {value!r}")
        elif alike(known.value, value):
            tally.add("equal")
        elif known.value is False and value is None and check.asked["kind"] == "parser":
            tally.add("off")  # a switch of accelerate's own action: None where argparse has False
        else:
            tally.add("wrong", f"{label} {name}: {known.value!r}, is {value!r}")
    for name in said if check.asked["kind"] != "parser" else ():  # words without dashes, and --help
        short = name.removeprefix(check.prefix)
        if name.startswith(check.prefix) and short not in real and not (check.prefix and "." in short):
            tally.add("extra", f"{label} {name}")


def instances(
    check: Check,
    trees: Sequence[SourceTree],
    said: Mapping[str, Declared],
    real: Mapping[str, Any],
    tally: Tally,
    label: str,
) -> None:
    if "made" not in real:
        return
    values = {
        name: list(one.value) if isinstance(one.value, tuple) else one.value
        for name, one in said.items()
        if not one.why
    }
    values.update(real["given"])
    made = initialised(check.asked["name"], *trees, values=values)
    for name, value in real["made"].items():
        known, expected, where = made.get(name, (name in values, values.get(name), "left as it is"))
        if not known or expected is UNKNOWN:
            tally.add("computed")
        elif alike(expected, value):
            tally.add("equal" if name not in made else "followed")
        else:
            tally.add("wrong", f"{label} {name}: {expected!r} by {where}, is {value!r}")


def results(
    folder: Path, site: Path | None, packages: Sequence[str], last: int
) -> Iterator[tuple[str, str, Tally, Tally]]:
    sources = Sources(folder / "sources", "index", index=index_of_pip)
    derived = Derived(sources)
    derived.attach()
    for framework in packages:
        for version in RELEASES[framework].split()[-last:]:
            fields, made = Tally(), Tally()
            package = profiles()[framework].package
            other = BESIDE.get(f"{framework} {version}") or BESIDE.get(framework)
            base = TRANSFORMERS.get(version) if framework == "trl" else other
            tables.learn(framework, version)
            if base:
                tables.learn("transformers", base)
            try:
                trees = [sources.open(package, version), *([sources.open("transformers", base)] if base else [])]
            except TrainmedicError as error:
                fields.add("not had", f"{framework} {version}: {error}")
                yield framework, version, fields, made
                continue
            commands = catalogue.commands(framework, version)
            # This release may lack a class.
            names = catalogue.keys(framework, version)
            checks = [
                check
                for check in CHECKS[framework]
                if check.owner in commands and any(name.startswith(check.prefix) for name in names)
            ]
            for check, real in probe(checks, trees, folder, site).items():
                label = f"{framework} {version} {check.owner}"
                if isinstance(real, str):
                    fields.add("not importable", f"{label} ({check.asked.get('module', '')}): {real}")
                    continue
                said = declared(framework, (version,), (check.owner,), base)
                if check.owner in _ALONE:
                    said = {name: one for name, one in said.items() if one.framework == framework}
                defaults(check, said, real["defaults"], fields, label)
                instances(check, trees, said, real, made, label)
            yield framework, version, fields, made


_ALONE = ("ModelConfig", "ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments")
"""Classes beside the one that extends TrainingArguments."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--site", type=Path)
    parser.add_argument("--only", nargs="+", choices=tuple(CHECKS), default=tuple(CHECKS))
    parser.add_argument("--last", type=int, default=10, help="only so many of the newest releases")
    parser.add_argument("--show", type=int, default=20, help="lines of what is not equal, for each package")
    options = parser.parse_args()
    wrong, shown = 0, Counter[str]()
    for framework, version, fields, made in results(options.folder.resolve(), options.site, options.only, options.last):
        print(f"{framework} {version}: defaults {dict(fields.counts)}, instances {dict(made.counts)}", flush=True)
        for line in (*fields.lines, *made.lines):
            shown[framework] += 1
            if shown[framework] <= options.show:
                print(f"  {line}")
        wrong += fields.counts["wrong"] + made.counts["wrong"] + fields.counts["missing"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
