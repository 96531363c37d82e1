"""Options are read from sources without running them, and kept in catalogue files."""

from __future__ import annotations

import json
import textwrap

import pytest

from trainmedic.kb.errors import NotFound
from trainmedic.kb.frameworks.book import Book, Entry, book_of, text_of
from trainmedic.kb.frameworks.tables import Table
from trainmedic.kb.sources.options import FRAMEWORKS, extract
from trainmedic.kb.sources.tree import SourceTree, tree_of


def files_of(files: dict[str, str], package: str = "x") -> SourceTree:
    return tree_of(package, "1.0.0", "checkout", {path: text.encode() for path, text in files.items()})


ARGPARSE = """
import argparse
raise SystemExit("never run me")
SIZE = 2 ** 3
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro_train_batch_size", type=int, default=SIZE)
    parser.add_argument("--flash_attn", action="store_true", default=False)
    parser.add_argument("--attn", type=str, default="eager", choices=["eager", "sdpa"])
    parser.add_argument("--adam_betas", type=float, nargs=2, default=(0.9, 0.95))
    parser.add_argument("--name", type=str, default="run_%s" % now())
    parser.add_argument("--big", type=int, default=int(1e8))
    for role in ("actor", "critic"):
        parser.add_argument(f"--{role}.lr", type=float, default=1e-6 if role == "actor" else 9e-6)
"""


def test_argparse_calls_become_options() -> None:
    other = ARGPARSE.replace("SIZE = 2 ** 3", "SIZE = 4").replace('"--attn"', '"--only_here"')
    files = {"openrlhf/cli/train_dpo.py": ARGPARSE, "openrlhf/cli/train_kto.py": other, "openrlhf/cli/broken.py": "("}
    found = extract("openrlhf", files_of(files))
    assert found["micro_train_batch_size"] == {
        "type": "int", "default": 8, "in": ["train_dpo", "train_kto"], "default_by": {"train_kto": 4},
    }  # fmt: skip
    assert found["flash_attn"] == {
        "type": "flag", "default": False, "action": "store_true", "in": ["train_dpo", "train_kto"],
    }  # fmt: skip
    assert found["attn"]["choices"] == ["eager", "sdpa"]
    assert found["attn"]["in"] == ["train_dpo"]
    assert found["adam_betas"]["default"] == [0.9, 0.95]
    assert found["adam_betas"]["nargs"] == 2
    assert found["name"]["default"] == {"$expr": "'run_%s' % now()"}
    assert found["big"]["default"] == 100_000_000
    assert (found["actor.lr"]["default"], found["critic.lr"]["default"]) == (1e-6, 9e-6)


TRL = """
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Optional
class Kind(Enum):
    SIGMOID = "sigmoid"
    IPO = "ipo"
class Plain:
    ignored: int = 1
@dataclass
class _Base:
    learning_rate: float = field(default=1e-6, metadata={"help": "x"})
@dataclass
class DPOConfig(_Base, TrainingArguments):
    beta: float = 0.1
    loss_type: Kind = Kind.SIGMOID
    mode: Literal["a", "b"] = "a"
    names: Optional[list[str]] = field(default_factory=list)
    columns: list[str] = field(default_factory=lambda: ["x"])
    where: str = field(default_factory=somewhere)
    _hidden: int = 3
"""
SFT = "@dataclass\nclass SFTConfig(_Base):\n    learning_rate: float = 2e-5\n    must: str\n"


def test_dataclass_fields_become_options() -> None:
    found = extract("trl", files_of({"trl/trainer/dpo_config.py": TRL, "trl/trainer/sft_config.py": SFT}))
    assert found["learning_rate"]["default_by"] == {"SFTConfig": 2e-5}
    assert found["learning_rate"]["in"] == ["DPOConfig", "SFTConfig"]
    assert found["loss_type"] == {
        "type": "Kind", "default": "sigmoid", "choices": ["sigmoid", "ipo"], "in": ["DPOConfig"],
    }  # fmt: skip
    assert found["mode"]["choices"] == ["a", "b"]
    assert found["names"]["default"] == []
    assert found["columns"]["default"] == ["x"]
    assert found["where"]["default"] == {"$expr": "somewhere"}
    assert found["must"]["default"] == "<required>"
    assert "_hidden" not in found
    assert "ignored" not in found


def test_pydantic_models_become_nested_options() -> None:
    config = (
        "class Trl(BaseModel):\n    beta: float | None = Field(default=None, ge=0)\n"
        "class TRLConfig(Trl):\n    use_vllm: bool = False\n"
        "class Mixin(BaseModel):\n    kind: str | None = Field(None, alias='model_type')\n"
        "class AxolotlInputConfig(Mixin, BaseModel):\n    base_model: str\n    trl: TRLConfig | None = None\n"
        "    model_config: ConfigDict = ConfigDict()\n"
    )
    liger = "class LigerArgs(BaseModel):\n    liger_rope: bool | None = None\n"
    files = {"axolotl/utils/schemas/config.py": config, "axolotl/integrations/liger/args.py": liger}
    found = extract("axolotl", files_of(files))
    assert found["base_model"]["default"] == "<required>"
    assert found["trl.beta"] == {"type": "float | None", "default": None, "ge": 0, "in": ["TRLConfig"]}
    assert found["trl.use_vllm"]["default"] is False
    assert found["model_type"]["in"] == ["top"]
    assert found["liger_rope"]["in"] == ["LigerArgs"]
    assert "model_config" not in found


def test_hydra_trees_become_dotted_options() -> None:
    tree = "defaults: [_self_]\nactor: {optim: {lr: 1e-6}, empty: {}}\ndata: {files: [a, b]}\nname: ???\n"
    found = extract("verl", files_of({"verl/trainer/config/ppo_trainer.yaml": tree}))
    assert found["actor.optim.lr"] == {"type": "float", "default": 1e-6, "in": ["ppo_trainer"]}
    assert found["data.files"]["default"] == ["a", "b"]
    assert found["actor.empty"]["default"] == {}
    assert found["name"]["default"] == "???"
    assert not any(name.startswith("defaults") for name in found)


SWIFT = "@dataclass\nclass TrainArguments:\n    train_type: str = 'lora'\n"
RLHF = "@dataclass\nclass RLHFArguments(TrainArguments):\n    rlhf_type: str = 'dpo'\n    train_type: str = 'full'\n"
LLAMAFACTORY = "@dataclass\nclass ModelArguments:\n    flash_attn: str = 'auto'\n"
TRANSFORMERS = "@dataclass\nclass TrainingArguments:\n    seed: int = 42\n"
PEFT = "@dataclass\nclass LoraConfig:\n    r: int = field(default=8)\n"
DEEPSPEED = "class DeepSpeedZeroConfig(M):\n    stage: int = 0\n    p: int = Field(5, alias='stage3_p')\n"
LOOKUPS = "X = 'gradient_clipping'\nZERO = 0.\ndef f(param_dict):\n    return get_scalar_param(param_dict, X, ZERO)\n"


@pytest.mark.parametrize(
    ("framework", "files", "option", "default"),
    [
        ("ms-swift", {"swift/llm/argument/train_args.py": SWIFT, "swift/llm/argument/rlhf_args.py": RLHF},
         "rlhf_type", "dpo"),
        ("llamafactory", {"llamafactory/hparams/a.py": LLAMAFACTORY},
         "flash_attn", "auto"),
        ("transformers", {"transformers/training_args.py": TRANSFORMERS},
         "seed", 42),
        ("peft", {"peft/tuners/lora/config.py": PEFT}, "r", 8),
        ("accelerate", {"accelerate/commands/launch.py": "p.add_argument('--num_processes', '-n', type=int)\n"},
         "num_processes", None),
        ("deepspeed", {"deepspeed/runtime/zero/config.py": DEEPSPEED}, "zero_optimization.stage3_p", 5),
        ("deepspeed", {"deepspeed/runtime/config.py": LOOKUPS}, "gradient_clipping", 0.0),
    ],
)  # fmt: skip
def test_every_framework_is_read_where_it_declares(
    framework: str, files: dict[str, str], option: str, default: object
) -> None:
    found = extract(framework, files_of(files))
    assert found[option]["default"] == default


MEGATRON = """
def _add_training_args(parser):
    exclude = ["internal"]
    group = ArgumentGroupFactory(TrainingConfig, exclude=exclude).build_group(parser)
    group.add_argument("--save", "--output-folder", type=str)
"""
TRAINING = """
class Backend(enum.Enum):
    flash = 1
    auto = 5
@dataclass
class TrainingConfig:
    train_iters: int | None = None
    rampup: Optional[list[int]] = field(default=None, metadata={"argparse_meta": {"nargs": 3}})
    fuse: bool = True
    on_cpu: bool = field(default=False, metadata={"argparse_meta": {"default": None}})
    bias: bool = field(default=True, metadata={"argparse_meta": {"arg_names": ["--disable-bias-linear"]}})
    scope: str = field(default="a", metadata={"argparse_meta": {"type": str, "choices": list(Other)}})
    backend: Backend = Backend.auto
    method: Literal["uniform", "block"] | None = None
    internal: int = 0
"""


def test_a_dataclass_that_becomes_arguments_is_read_as_those() -> None:
    files = {"megatron/training/arguments.py": MEGATRON, "megatron/training/config/training_config.py": TRAINING}
    found = extract("megatron-core", files_of(files))
    assert {name: (entry["type"], entry["default"]) for name, entry in found.items()} == {
        "train-iters": ("int", None), "rampup": ("int", None), "no-fuse": ("flag", True), "on-cpu": ("flag", None),
        "disable-fuse": ("flag", True), "disable-bias-linear": ("flag", True), "scope": ("str", "a"),
        "backend": ("str", "auto"), "method": ("str", None), "save": ("str", None), "output-folder": ("str", None),
    }  # fmt: skip
    assert found["on-cpu"]["action"] == "store_true"
    assert found["rampup"]["nargs"] == 3
    assert found["backend"]["choices"] == ["flash", "auto"]
    assert "choices" not in found["scope"]


def test_classes_of_another_package_are_read_where_it_is_given() -> None:
    base = "class TrainingConfig:\n    train_iters: int = 9\nclass RNGConfig:\n    seed: int = 1234\n"
    megatron = files_of({"megatron/training/config/training_config.py": base}, "megatron-core")
    own = "class TrainingConfig(MTrainTrainingConfig):\n    skip_train: bool = False\n"
    found = extract("megatron-bridge", files_of({"megatron/bridge/training/config.py": own}), megatron)
    assert {name: entry["default"] for name, entry in found.items()} == {
        "train.train_iters": 9,
        "train.skip_train": False,
        "rng.seed": 1234,
    }


def test_an_example_files_options_are_those_of_its_algorithm() -> None:
    files = {
        "examples/configs/grpo_math_1B.yaml": "policy: {precision: bfloat16}\ngrpo: {max_num_steps: 10}\n",
        "examples/configs/grpo_math_1B_megatron.yaml": "policy: {precision: fp8, megatron_cfg: {enabled: true}}\n",
        "examples/configs/sft.yaml": "policy: {precision: float32}\n",
    }
    found = extract("nemo-rl", files_of(files))
    assert found["policy.precision"]["default_by"] == {"sft": "float32"}
    assert found["policy.precision"]["default"] == "bfloat16"
    assert found["policy.megatron_cfg.enabled"]["in"] == ["grpo"]
    assert found["grpo.max_num_steps"]["default"] == 10


def test_a_framework_that_extends_another_has_its_options_as_well() -> None:
    own = 'reset_arg(parser, "--lr", type=float, default=1e-6)\nparser.add_argument("--colocate")\n'
    fsdp = "class FSDPArgs:\n    num_layers: int = 3\n"
    base = 'parser.add_argument("--lr", type=float)\nparser.add_argument("--num-layers", type=int)\n'
    files = {"slime/utils/arguments.py": own, "slime/backends/fsdp_utils/arguments.py": fsdp}
    megatron = files_of({"megatron/training/arguments.py": base}, "megatron-core")
    found = extract("slime", files_of(files), megatron)
    assert {name: (entry["default"], entry["in"]) for name, entry in found.items()} == {
        "colocate": (None, ["slime"]),
        "lr": (1e-6, ["slime"]),
        "num-layers": (None, ["megatron-core"]),
    }


def test_a_base_of_another_project_is_not_the_class_of_that_name_here() -> None:
    own = "@dataclass\nclass Seq2SeqTrainingArguments:\n    mine: int = 1\n"
    train = "from transformers import Seq2SeqTrainingArguments\n"
    train += "@dataclass\nclass TrainArguments(Seq2SeqTrainingArguments):\n    packing: bool = False\n"
    files = {
        "swift/trainers/arguments.py": own,
        "swift/llm/argument/train_args.py": train,
    }
    found = extract("ms-swift", files_of(files))
    assert sorted(found) == ["packing"]


RECIPE = """
def main(cfg):
    rate = cfg.optimizer.lr
    cfg.get("clip_grad_norm", None)
    cfg.get("compile", False)
    return cfg.batch_size, cfg.get(KEY)
"""
REGISTRY = """
_ALL_RECIPES = [Recipe(name="sft", file_path="sft.py", configs=[Config(name="m/s", file_path="m/s.yaml")])]
"""
BUILDERS = """
def lora_m(rank: int, dropout: float = 0.0):
    pass

class Loader:
    def __init__(self, folder: str, *, shards=4):
        pass
"""


def test_what_a_recipe_reads_and_what_its_components_take_become_options() -> None:
    files = {
        "torchtune/_recipe_registry.py": REGISTRY,
        "torchtune/models/m.py": BUILDERS,
        "recipes/sft.py": RECIPE,
        "recipes/configs/m/s.yaml": (
            "model:\n  _component_: torchtune.models.lora_m\n  rank: 8\nbatch_size: 2\n"
            "optimizer: {_component_: torch.optim.AdamW, lr: 1e-5}\nloader: {_component_: torchtune.Loader}\n"
        ),
    }
    found = extract("torchtune", files_of(files))
    assert found["batch_size"]["default"] == "<required>"  # a shipped file's value is no default
    assert found["compile"] == {"type": "bool", "default": False, "in": ["sft"]}
    assert found["model.dropout"]["default"] == 0.0
    assert found["loader.shards"]["default"] == 4
    assert {"optimizer.lr", "model._component_", "model.rank", "clip_grad_norm"} <= found.keys()
    assert not {"optimizer", "get", "KEY"} & found.keys()


def test_what_shipped_configuration_files_assign_become_options() -> None:
    text = "lr = 1e-5\nalpaca = dict(path=1)\nmodel = dict(type=A, lora=dict(r=8))\n"
    files = {f"xtuner/configs/llama/x/llama_{number}_e3.py": text for number in range(6)}
    files["xtuner/tools/train.py"] = 'parser.add_argument("--deepspeed", type=str)\n'
    files["xtuner/model/sft.py"] = "class SupervisedFinetune:\n    def __init__(self, llm, lora=None): pass\n"
    found = extract("xtuner", files_of(files))
    assert set(found) == {"lr", "model.type", "model.lora.r", "model.llm", "model.lora", "deepspeed"}
    classes = {"xtuner/v1/config/fsdp.py": "class FSDPConfig(BaseModel):\n    ep_size: int = 1\n"}
    assert extract("xtuner", files_of(classes))["ep_size"]["default"] == 1


WORKERS = """
@dataclass
class ModelArguments:
    dtype: str = "bf16"
@dataclass
class WorkerConfig:
    model_args: ModelArguments = field(default_factory=ModelArguments)
    infer_batch_size: int = field(default=16)
"""


def test_every_worker_has_the_options_of_its_groups() -> None:
    pipeline = "class SFTConfig(BaseConfig):\n    sft_train: WorkerConfig = None\n    seed: int = 42\n"
    files = {"roll/configs/worker_config.py": WORKERS, "roll/pipeline/sft/sft_config.py": pipeline}
    found = extract("roll", files_of(files))
    assert set(found) == {"seed", "sft_train.model_args.dtype", "sft_train.infer_batch_size"}
    assert found["sft_train.model_args.dtype"]["default"] == "bf16"


NESTED = """
@dataclass
class OptimizerConfig:
    lr: float = 1e-6
@dataclass
class CriticConfig:
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(lr=5e-6))
@dataclass
class SkyRLTrainConfig:
    critic: CriticConfig = field(default_factory=CriticConfig)
    optimizer: Optional[OptimizerConfig] = None
"""


def test_nested_classes_are_options_with_dots() -> None:
    found = extract("skyrl", files_of({"skyrl/train/config/config.py": NESTED}))
    assert {key: entry["default"] for key, entry in found.items()} == {
        "critic.optimizer.lr": 5e-6,
        "optimizer.lr": 1e-6,
    }


def test_files_that_hydra_mounts_are_options_at_their_place() -> None:
    folder = "skyrl_train/config/"
    files = {
        f"{folder}ppo_base_config.yaml": "defaults:\n  - mega@trainer.mega: policy\ntrainer:\n  epochs: 1\n",
        f"{folder}mega/policy.yaml": "tp: 2\n",
    }
    found = extract("skyrl-train", files_of(files))
    assert {key: entry["default"] for key, entry in found.items()} == {"trainer.epochs": 1, "trainer.mega.tp": 2}


SERVER_ARGS = """
class ServerArgs:
    model_path: A[str, Arg(help="weights", aliases=["--model"])]
    tp_size: A[int, Arg(help="size", aliases=["--tensor-parallel-size"])] = 1
    enable_metrics: A[bool, "Log metrics."] = False
    stages: A[Optional[List[int]], "Sizes."] = None
    hooks: A[Optional[str], Arg(help="a file", type_parser=load)] = None
    disable_cuda_graph: A[bool, Arg(no_cli=True)] = False

    def add_cli_args(parser):
        parser.add_argument("--disable-cuda-graph", action=DeprecatedStoreTrueAction)
        parser.add_argument("--config", type=str)
"""
FIELDS = """
class Memory(Struct):
    page_size: A[Optional[int], Arg(help="size")] = None
    gpu_id: A[int, Derived(doc="set at run time")]
"""


def test_flags_and_fields_of_a_server_are_read() -> None:
    fields = {"sglang/srt/arg_groups/fields/memory.py": FIELDS}
    options = extract("sglang", files_of({"sglang/srt/server_args.py": SERVER_ARGS, **fields}))
    assert options["model"] == {"type": "str", "default": "<required>", "in": ["server"]}
    assert options["tp_size"] == {"type": "int", "default": 1, "in": ["server", "ServerArgs"]}
    assert options["enable_metrics"]["type"] == "flag"
    assert options["enable_metrics"]["type_by"] == {"ServerArgs": "bool"}
    assert (options["stages"]["nargs"], options["hooks"]["nargs"], options["disable_cuda_graph"]["nargs"]) == (
        "+",
        "?",
        "?",
    )
    assert options["config"]["in"] == ["server"]
    assert options["page_size"]["in"] == ["server", "ServerArgs"]
    assert "gpu_id" not in options


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_release_without_declarations_is_an_error(framework: str) -> None:
    with pytest.raises(NotFound):
        extract(framework, files_of({"readme.py": "x"}))


def entry(default: object, *owners: str) -> Entry:
    return {"type": "int", "default": default, "in": list(owners)}


def test_what_is_written_is_what_is_read() -> None:
    book = Book(framework="trl")
    book.add("v0.2.0", {"a": entry(1, "X"), "b": entry(2, "X", "Y")})
    book.add("v0.10.0", {"a": entry(1, "X")})
    text = text_of(book)
    assert book_of(Table(text)) == book
    assert text_of(book_of(Table(text))) == text
    assert json.loads(text.split("\n")[1]) == [["0.2.0", None], [[0, 1, {"type": "int", "default": 1, "in": 0}]]]


def test_another_order_of_owners_is_no_other_default() -> None:
    book = Book(framework="trl")
    book.add("1.0", {"a": {"type": "int", "default": None, "in": ["X", "Y"], "default_by": {"Y": 5}}})
    book.add("1.1", {"a": {"type": "int", "default": 5, "in": ["Y", "X"], "default_by": {"X": None}}})
    assert book.releases["1.1"] == book.releases["1.0"]


def test_of_a_further_run_only_what_differs_is_written() -> None:
    book = Book(framework="trl")
    book.add("1.0", {"a": {**entry(1, "X"), "choices": [1, 2]}})
    book.add("1.1", {"a": entry(True, "X")})
    assert json.loads(text_of(book).split("\n")[1])[1] == [
        [0, 0, {"type": "int", "default": 1, "choices": [1, 2], "in": 0}],
        [1, 1, {"default": True, "choices": None}],
    ]
    assert book_of(Table(text_of(book))) == book
    assert Table(text_of(book)).info("a", "1.1") == {"type": "int", "default": True, "in": 0}


def test_lives_follow_the_releases_that_are_added() -> None:
    book = Book(framework="trl")
    book.add("v1.0", {"old": entry(1, "X")})
    book.add("v1.2", {"old": entry(1, "X"), "new": entry(1, "X")})
    assert book.lives == {"old": ["1.0", None], "new": ["1.2", None]}
    book.add("v1.3", {"new": entry(1, "X")})
    assert book.lives["old"] == ["1.0", "1.2"]
    book.add("v1.1", {"new": entry(1, "X")})
    assert book.lives["old"] == ["1.0", "1.2", True]
    assert book.lives["new"] == ["1.1", None]
    book.add("v1.4", {"old": entry(1, "X"), "new": entry(1, "X")})
    assert book.lives["old"] == ["1.0", None, True]


def test_what_a_hydra_file_builds_on_is_mounted_where_it_says_and_overridden_as_hydra_does() -> None:
    folder = "verl/trainer/config"
    files = {
        f"{folder}/ppo_trainer.yaml": """
            defaults:
              - engine: dp
              - actor@actor_ref.actor: ${engine}_actor
              - _self_
            actor_ref: {actor: {lr: 2}}
            """,
        f"{folder}/ppo_megatron_trainer.yaml": "defaults: [ppo_trainer, {override engine: mega}]\nextra: 1",
        f"{folder}/engine/dp.yaml": "# @package _global_\nengine: dp",
        f"{folder}/engine/mega.yaml": "# @package _global_\nengine: mega",
        f"{folder}/actor/dp_actor.yaml": "defaults: [actor, {../optim@optim: sgd}]\nlr: 1",
        f"{folder}/actor/mega_actor.yaml": "defaults: [mega_actor]\nlr: 3\nbuckets: 4",
        f"{folder}/actor/actor.yaml": "lr: 0\nclip: true",
        f"{folder}/optim/sgd.yaml": "name: sgd",
    }
    options = extract("verl", files_of({name: textwrap.dedent(text) for name, text in files.items()}))
    of = {
        owner: {
            name: entry.get("default_by", {}).get(owner, entry["default"])
            for name, entry in options.items()
            if owner in entry["in"]
        }
        for owner in ("ppo_trainer", "ppo_megatron_trainer")
    }
    actor = "actor_ref.actor"
    assert of["ppo_trainer"] == {
        **{f"{actor}.lr": 2, f"{actor}.clip": True, f"{actor}.optim.name": "sgd", "engine": "dp"},
    }
    assert of["ppo_megatron_trainer"] == {f"{actor}.lr": 2, f"{actor}.buckets": 4, "engine": "mega", "extra": 1}
