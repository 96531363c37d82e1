"""Scripts as frameworks ship them, shortened: who runs, what is trained, and that nothing is blamed."""

from __future__ import annotations

from tests.every_case import every_case
from tests.shipped import shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import Value
from trainmedic.kb.parse.pipeline import parse

MEGATRON = """
GPUS_PER_NODE=8
DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes 2)
GPT_MODEL_ARGS=(--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048
    --max-position-embeddings 2048 --attention-backend auto)
TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size 1536 --train-iters 500000 --weight-decay 0.1 --adam-beta2 0.95
    --clip-grad 1.0 --bf16 --lr 6.0e-5 --lr-decay-style cosine --min-lr 6.0e-6 --lr-warmup-fraction .001)
MODEL_PARALLEL_ARGS=(--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${GPT_MODEL_ARGS[@]} ${TRAINING_ARGS[@]} ${MODEL_PARALLEL_ARGS[@]}
"""
SLIME = """
ROLLOUT_ARGS=(
   --prompt-data /data/dapo-math-17k/dapo-math-17k.jsonl
   --num-rollout 3000
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len 8192
   --global-batch-size 256
)
GRPO_ARGS=(--advantage-estimator grpo --use-kl-loss --kl-loss-coef 0.00 --eps-clip 0.2 --eps-clip-high 0.28)
ray job submit --address="http://127.0.0.1:8265" -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 \\
   --colocate --hf-checkpoint /data/Qwen3-4B --lr 1e-6 --tensor-model-parallel-size 2 --recompute-granularity full \\
   --sglang-mem-fraction-static 0.7 ${ROLLOUT_ARGS[@]} ${GRPO_ARGS[@]}
"""
NEMO_RL = """
uv run examples/run_grpo_math.py --config examples/configs/grpo_math_1B_megatron.yaml \\
  policy.megatron_cfg.enabled=true policy.megatron_cfg.optimizer.lr=5e-7 policy.dtensor_cfg.enabled=false \\
  policy.model_name=Qwen/Qwen2.5-7B cluster.gpus_per_node=8 grpo.num_generations_per_prompt=16
"""
BRIDGE = """
uv run python -m torch.distributed.run --nproc_per_node=8 scripts/training/run_recipe.py \\
  --recipe llama32_1b_peft_config --peft_scheme lora train.train_iters=50 train.global_batch_size=32 \\
  train.micro_batch_size=2 optimizer.lr=0.0002 model.seq_length=4096 peft.dim=8
"""
TITAN = """
torchrun --nproc_per_node=8 --rdzv_backend c10d --rdzv_endpoint="localhost:0" --local-ranks-filter 0 --role rank \\
  -m torchtitan.train --job.config_file ./torchtitan/models/llama3/train_configs/llama3_8b.toml \\
  --training.local_batch_size 2 --training.global_batch_size 64 --parallelism.tensor_parallel_degree 2 --compile.enable
"""


@every_case(
    ("text", "framework", "algorithm", "settings"),
    [
        (MEGATRON, "megatron-core", "pt", {"learning_rate": 6e-5, "tensor_parallel": 8, "num_nodes": 2, "bf16": True}),
        (
            SLIME,
            "slime",
            "grpo",
            {
                "num_generations": 8,
                "max_completion_length": 8192,
                "learning_rate": 1e-6,
                "gradient_checkpointing": True,
            },
        ),
        (NEMO_RL, "nemo-rl", "grpo", {"model": "Qwen/Qwen2.5-7B", "learning_rate": 5e-7, "num_generations": 16}),
        (
            TITAN,
            "torchtitan",
            "pt",
            {"micro_batch": 2, "global_batch": 64, "tensor_parallel": 2, "torch_compile": True},
        ),
        (
            BRIDGE,
            "megatron-bridge",
            "sft",
            {"learning_rate": 2e-4, "max_length": 4096, "lora_rank": 8, "max_steps": 50},
        ),
    ],
)
def test_a_shipped_script_is_recognised_and_not_blamed(
    text: str, framework: str, algorithm: str, settings: dict[str, Value]
) -> None:
    evidence = parse("", [Attachment(name="run.sh", content=text)])
    run = evidence.run
    assert run.framework is not None
    assert run.algorithm is not None
    assert (run.framework.value, run.algorithm.value) == (framework, algorithm)
    assert {name: run.settings[name].value for name in settings} == settings
    assert [finding.rule_id for finding in check(evidence, shipped_rules()).findings] == []


def test_a_misspelt_argument_of_megatron_is_refused() -> None:
    text = MEGATRON.replace("--adam-beta2", "--adam_beta2")
    findings = check(parse("", [Attachment(name="run.sh", content=text)]), shipped_rules()).findings
    assert [finding.rule_id for finding in findings] == ["option-unknown"]


def test_what_sglang_takes_is_no_misspelt_argument_of_slime() -> None:
    text = SLIME.replace("--sglang-mem-fraction-static", "--sglang-any-new-option")
    assert check(parse("", [Attachment(name="run.sh", content=text)]), shipped_rules()).findings == ()


def test_a_misspelt_key_of_a_toml_file_is_refused() -> None:
    text = "[training]\nlocal_batch_size = 1\nsteps = 9\n[checkpoint]\nintervall = 500\n[job]\ndump_folder = 'o'\n"
    findings = check(parse("", [Attachment(name="llama3.toml", content=text)]), shipped_rules()).findings
    assert [finding.rule_id for finding in findings] == ["option-unknown"]
