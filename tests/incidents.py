"""The five founding incidents as their reporters gave them: files, and the question in two languages."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.model.place import Attachment


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One incident. ``place`` is (attachment, line, column) of the evidence that the rule must point at."""

    name: str
    files: tuple[Attachment, ...]
    en: str
    zh: str
    case: str
    rule: str
    place: tuple[str, int, int]
    verdict: str = "answered"
    patch_clears: bool = False
    appears: tuple[str, ...] = ()


KTO_COMMAND = """set -x
deepspeed --include localhost:0,1,2,3,4,5,6,7 ../train_kto.py \\
   --save_path ./checkpoint/qwen2-7b-kto \\
   --save_steps -1 \\
   --logging_steps 1 \\
   --eval_steps -1 \\
   --train_batch_size 128 \\
   --micro_train_batch_size 2 \\
   --pretrain /models/qwen2-7b-sft \\
   --max_epochs 1 \\
   --max_len 8192 \\
   --zero_stage 3 \\
   --beta 0.1 \\
   --learning_rate 5e-7 \\
   --dataset /data/business.jsonl \\
   --input_key prompt \\
   --gradient_checkpointing \\
   --vanilla_loss
"""

KTO_SINGLE = """deepspeed --module openrlhf.cli.train_kto \\
   --pretrain meta-llama/Meta-Llama-3-8B-Instruct \\
   --micro_train_batch_size 1 \\
   --train_batch_size 128 \\
   --zero_stage 3 \\
   --bf16 \\
   --vanilla_loss
"""

KTO_YAML = """### model
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
### method
stage: kto
do_train: true
finetuning_type: full
pref_beta: 0.1
deepspeed: examples/deepspeed/ds_z3_config.json
### dataset
dataset: kto_mix
template: qwen
cutoff_len: 2048
### output
output_dir: saves/kto
logging_steps: 10
### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-6
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
"""

KTO_LOG = (
    "{'loss': 0.5806, 'grad_norm': 0.160, 'learning_rate': 4.22029964127453e-08, 'rewards/chosen': 0.000456, "
    "'rewards/rejected': 5.9e-05, 'logps/chosen': -1.80, 'logps/rejected': -10.94, 'logits/chosen': -202530000.0, "
    "'logits/rejected': -213160000.0, 'kl': 11.29, 'epoch': 0.04}\n"
)

SWIFT_COMMAND = """NPROC_PER_NODE=4 \\
CUDA_VISIBLE_DEVICES=0,1,2,3 \\
swift rlhf \\
    --rlhf_type dpo \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --train_type full \\
    --dataset /data/rft.jsonl \\
    --torch_dtype bfloat16 \\
    --num_train_epochs 1 \\
    --per_device_train_batch_size 1 \\
    --learning_rate 1e-5 \\
    --gradient_accumulation_steps 16 \\
    --beta 0.1 \\
    --max_length 8192 \\
    --attn_impl flash_attn \\
    --sequence_parallel_size 4 \\
    --deepspeed zero3
"""

SWIFT_LOG = (
    "{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-06, 'rewards/chosen': 0.0, 'rewards/rejected': 0.0, "
    "'rewards/accuracies': 0.0, 'rewards/margins': 0.0, 'logps/chosen': -120.5, 'logps/rejected': -131.2, "
    "'nll_loss': nan, 'epoch': 0.01, 'global_step/max_steps': '1/120'}\n"
)

GEMMA_COMMAND = """deepspeed --module openrlhf.cli.train_rm \\
   --save_path ./checkpoint/gemma-2-2b-rm \\
   --train_batch_size 128 \\
   --micro_train_batch_size 4 \\
   --pretrain google/gemma-2-2b-it \\
   --bf16 \\
   --max_len 2048 \\
   --zero_stage 2 \\
   --learning_rate 5e-6 \\
   --dataset Anthropic/hh-rlhf \\
   --flash_attn \\
   --gradient_checkpointing
"""

GEMMA_VERSIONS = "openrlhf==0.5.1\ntransformers==4.46.3\nflash-attn==2.6.1\ntorch==2.5.1\ndeepspeed==0.15.0\n"

TRL_COMMAND = """python examples/scripts/reward_modeling.py \\
    --model_name_or_path Qwen/Qwen2.5-Math-1.5B-Instruct \\
    --dataset_name trl-lib/ultrafeedback_binarized \\
    --output_dir rm-lora \\
    --per_device_train_batch_size 1 \\
    --gradient_accumulation_steps 32 \\
    --num_train_epochs 1 \\
    --gradient_checkpointing True \\
    --learning_rate 1.0e-5 \\
    --logging_steps 1 \\
    --max_length 2048 \\
    --torch_dtype float16 \\
    --use_peft \\
    --lora_r 32 \\
    --lora_alpha 16 \\
    --lora_task_type SEQ_CLS
"""

TRL_VERSIONS = "trl==0.12.0\ntransformers==4.46.2\npeft==0.13.2\ntorch==2.5.1\naccelerate==1.1.1\n"

TRL_LOG = """{'loss': 0.7031, 'grad_norm': 4.2, 'learning_rate': 9.9e-06, 'epoch': 0.01}
{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 9.8e-06, 'epoch': 0.02}
{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 9.7e-06, 'epoch': 0.03}
"""


def files(**contents: str) -> tuple[Attachment, ...]:
    """Attachments by name; ``train_sh`` is ``train.sh``."""
    return tuple(Attachment(name=name.replace("_", "."), content=text) for name, text in contents.items())


INCIDENTS = (
    Incident(
        name="openrlhf-kto-vanilla-loss",
        files=files(train_sh=KTO_COMMAND),
        en="KTO training of my SFT'ed Qwen2-7B with OpenRLHF: loss is NaN. The same config works with Qwen1.5. Why?",
        zh="用 OpenRLHF 对 SFT 之后的 Qwen2-7B 做 KTO 训练，loss 一直是 nan，同样的配置 Qwen1.5 正常，为什么？",
        case="openrlhf-kto-vanilla-loss-nan",
        rule="openrlhf-kto-vanilla-loss",
        place=("train.sh", 18, 4),
        patch_clears=True,
    ),
    Incident(
        name="openrlhf-kto-vanilla-loss-single-class",
        files=files(train_sh=KTO_SINGLE),
        en="loss nan at every step, kto, openrlhf, llama-3",
        zh="openrlhf 跑 kto，llama3，每一步 loss 都是 nan",
        case="openrlhf-kto-vanilla-loss-nan",
        rule="openrlhf-kto-vanilla-loss-single-class",
        place=("train.sh", 3, 4),
        patch_clears=True,
        # Without the flag the run starts, and its micro batch of 1 then has another, milder fault.
        appears=("openrlhf-kto-kl-pairs-with-itself",),
    ),
    Incident(
        name="llamafactory-kto-logits",
        files=files(kto_yaml=KTO_YAML, train_log=KTO_LOG) + files(pip_txt="llamafactory==0.9.2\n"),
        en="LLaMA-Factory KTO full fine-tuning: logits explode to -2e8, the loss does not drop. LR too high?",
        zh="LLaMA-Factory KTO 全参训练，刚开始 logits 就爆炸到 1e8，loss 0.58 也不下降，是学习率太大吗？",
        case="kto-logits-sum-not-explosion",
        rule="kto-logits-are-a-sum",
        place=("train.log", 1, 214),
        verdict="no_fault",
    ),
    Incident(
        name="swift-dpo-sequence-parallel",
        files=files(train_sh=SWIFT_COMMAND, train_log=SWIFT_LOG) + files(pip_txt="ms-swift==3.1.0\n"),
        en="ms-swift DPO: nll_loss is always nan, labels printed are all -100. What is wrong?",
        zh="ms-swift 做 DPO，nll_loss 一直是 nan，打印 labels 全是 -100，什么原因？",
        case="swift-dpo-sequence-parallel-nan",
        rule="swift-rlhf-sequence-parallel-nan",
        place=("train.sh", 16, 5),
        patch_clears=True,
    ),
    Incident(
        name="gemma2-flash-attn",
        files=files(train_sh=GEMMA_COMMAND, pip_txt=GEMMA_VERSIONS),
        en="Reward model on gemma-2-2b-it with OpenRLHF gives NaN with flash attention on, any transformers version",
        zh="OpenRLHF 用 gemma-2-2b-it 训练奖励模型，一开 flash attention loss 就是 nan，换 transformers 版本也没用",
        case="gemma2-flash-attn-softcap-nan",
        rule="gemma2-flash-attn-no-softcap-backward",
        place=("train.sh", 11, 4),
        patch_clears=True,
    ),
    Incident(
        name="trl-reward-fp16",
        files=files(train_sh=TRL_COMMAND, pip_txt=TRL_VERSIONS, train_log=TRL_LOG),
        en="TRL reward modeling with LoRA: with lora_task_type SEQ_CLS loss goes inf, then 0.0 and grad_norm nan",
        zh="TRL 用 LoRA 训练奖励模型，lora_task_type 设成 SEQ_CLS 之后 loss 变成 0.0、grad_norm 是 nan",
        case="fp16-trainable-head-adam-eps-nan",
        rule="fp16-trainables-adam-eps",
        place=("train.sh", 12, 5),
        patch_clears=True,
    ),
)
