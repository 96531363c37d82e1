"""The signal kinds, what each means, and the thresholds that `kb.parse.logs.signals` decides them by.

The texts are Python and not a message catalogue: `trainmedic check` loads this module, and to read a catalogue would
cost it 6 to 10 ms of its 400.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trainmedic.kb.model.report import Text

LOGITS_HUGE = 1e4
LOSS_HUGE = 1e6
LOSS_LARGE = 100.0
GRAD_NORM_LARGE = 1e3
ENTROPY_NONE = 0.02
KL_NEGATIVE = -0.01
KL_HUGE = 10.0
CLIP_RATIO_HIGH = 0.3
CLIPPED_RATIO_HIGH = 0.9
WARMUP_SHARE = 0.1
SPIKE_FACTOR = 20.0
LOSS_SPIKE_FACTOR = 3.0
FLAT_SHARE = 0.01
MANY_POINTS = 10
SOME_POINTS = 8
FEW_POINTS = 5

KINDS: Mapping[str, Text] = MappingProxyType(
    {
        "loss_nan": Text(en="a loss is NaN", zh="loss 为 NaN"),
        "loss_inf": Text(en="a loss is infinite", zh="loss 为无穷大"),
        "loss_zero": Text(
            en="the logged loss is exactly 0 in two consecutive rows, or in one whose gradient norm is 0 "
            "(not for on-policy training, where 0 is ordinary)",
            zh="日志中的 loss 连续两行恰好为 0，或某行 loss 与梯度范数同为 0（在线策略训练除外，那里 0 是正常的）",
        ),
        "loss_zero_grad_norm_nan": Text(
            en="loss 0.0 together with grad_norm NaN: the Hugging Face log filter replaced a NaN loss",
            zh="loss 为 0.0 而 grad_norm 为 NaN:Hugging Face 的日志过滤把 NaN 的 loss 替换掉了",
        ),
        "grad_norm_nan": Text(en="the gradient norm is NaN", zh="梯度范数为 NaN"),
        "grad_norm_inf": Text(en="the gradient norm is infinite", zh="梯度范数为无穷大"),
        "grad_norm_zero": Text(
            en="the gradient norm is exactly 0 in two consecutive rows, or in the only one, behind the first step",
            zh="梯度范数连续两行恰好为 0，或唯一的一行（非首步）为 0",
        ),
        "grad_norm_spike": Text(
            en=f"a gradient norm above 1 is over {SPIKE_FACTOR:g} times the median of at least {SOME_POINTS} rows",
            zh=f"某行梯度范数大于 1 且超过（至少 {SOME_POINTS} 行的）中位数的 {SPIKE_FACTOR:g} 倍",
        ),
        "loss_spike": Text(
            en=f"a loss is over {LOSS_SPIKE_FACTOR:g} times the median of at least {SOME_POINTS} rows and falls back",
            zh=f"某行 loss 超过（至少 {SOME_POINTS} 行的）中位数的 {LOSS_SPIKE_FACTOR:g} 倍，随后回落",
        ),
        "loss_flat": Text(
            en=f"over at least {MANY_POINTS} rows outside the warm-up the loss moves by no more than {FLAT_SHARE:.0%}",
            zh=f"预热之外至少 {MANY_POINTS} 行中，loss 的变化不超过 {FLAT_SHARE:.0%}",
        ),
        "loss_diverging": Text(
            en=f"the loss ends at over 1.5 times its lowest level (at least {SOME_POINTS} rows), or passes "
            f"{LOSS_HUGE:g}",
            zh=f"loss 末段超过其最低水平的 1.5 倍（至少 {SOME_POINTS} 行），或超过 {LOSS_HUGE:g}",
        ),
        "loss_negative": Text(
            en="a loss is below 0 (not for on-policy training, where that is ordinary)",
            zh="loss 小于 0（在线策略训练除外，那里是正常的）",
        ),
        "loss_huge": Text(
            en=f"a supervised loss is over {LOSS_LARGE:g}: a uniform guess over any vocabulary costs about 12",
            zh=f"监督训练的 loss 超过 {LOSS_LARGE:g}：对任何词表随机猜测也只有 12 左右",
        ),
        "grad_norm_huge": Text(
            en=f"a gradient norm is over {GRAD_NORM_LARGE:g}", zh=f"梯度范数超过 {GRAD_NORM_LARGE:g}"
        ),
        "eval_loss_nan": Text(en="an evaluation loss is NaN or infinite", zh="评估 loss 为 NaN 或无穷大"),
        "nll_loss_nan": Text(en="the NLL term of the loss is NaN or infinite", zh="NLL 损失项为 NaN 或无穷大"),
        "reward_nan": Text(en="a reward is NaN or infinite", zh="奖励为 NaN 或无穷大"),
        "reward_flat": Text(
            en=f"the reward of on-policy training varies by no more than 2 % over at least {MANY_POINTS} rows",
            zh=f"在线策略训练的奖励在至少 {MANY_POINTS} 行内变化不超过 2 %",
        ),
        "reward_collapse": Text(
            en=f"the reward was positive and ends at under half of its best level (at least {SOME_POINTS} rows)",
            zh=f"奖励曾为正，末段不到其最好水平的一半（至少 {SOME_POINTS} 行）",
        ),
        "reward_hacking": Text(en="the user says the policy games the reward", zh="用户称策略在钻奖励的空子"),
        "reward_std_zero": Text(
            en="rewards within a group do not differ (reward_std 0, or nearly all groups) in two consecutive rows, "
            "or in the only one",
            zh="组内奖励没有差异（reward_std 为 0，或几乎所有组如此），连续两行或唯一的一行",
        ),
        "logps_nan": Text(en="log-probabilities are NaN or infinite", zh="对数概率为 NaN 或无穷大"),
        "logits_huge": Text(
            en=f"logged logits beyond ±{LOGITS_HUGE:g}; some trainers log a sum over all tokens, which is harmless",
            zh=f"日志中的 logits 绝对值超过 {LOGITS_HUGE:g}；有的训练器记录的是所有 token 之和，并无害处",
        ),
        "logits_nan": Text(en="logged logits are NaN or infinite", zh="日志中的 logits 为 NaN 或无穷大"),
        "kl_negative": Text(en=f"the logged KL is below {KL_NEGATIVE:g}", zh=f"日志中的 KL 小于 {KL_NEGATIVE:g}"),
        "kl_huge": Text(
            en=f"the logged KL is above {KL_HUGE:g}; some trainers log a sum over steps and ranks",
            zh=f"日志中的 KL 大于 {KL_HUGE:g}；有的训练器记录的是各步、各卡之和",
        ),
        "kl_zero": Text(en="the logged KL is exactly 0 in at least three rows", zh="日志中的 KL 至少三行恰好为 0"),
        "kl_nan": Text(en="the logged KL is NaN or infinite", zh="日志中的 KL 为 NaN 或无穷大"),
        "entropy_collapse": Text(
            en=f"the policy's entropy falls below a tenth of where it began (at least {FEW_POINTS} rows), or is under "
            f"{ENTROPY_NONE:g} in all of fewer",
            zh=f"策略熵降到起始的十分之一以下（至少 {FEW_POINTS} 行），或行数不足时全部低于 {ENTROPY_NONE:g}",
        ),
        "length_collapse": Text(
            en=f"completions shrink below 30 % of their first length (at least {FEW_POINTS} rows)",
            zh=f"生成长度缩到起始的 30 % 以下（至少 {FEW_POINTS} 行）",
        ),
        "length_explosion": Text(
            en=f"completions grow over 2.5 times their first length (at least {FEW_POINTS} rows)",
            zh=f"生成长度增长到起始的 2.5 倍以上（至少 {FEW_POINTS} 行）",
        ),
        "clip_ratio_high": Text(
            en=f"over {CLIP_RATIO_HIGH:.0%} of the probability ratios are clipped in two consecutive rows, or "
            "in the only one",
            zh=f"连续两行（或唯一的一行）有超过 {CLIP_RATIO_HIGH:.0%} 的概率比被裁剪",
        ),
        "accuracy_stuck": Text(
            en=f"preference accuracy stays within 0.05 of 0.5 over the later half of at least {MANY_POINTS} rows",
            zh=f"偏好准确率在（至少 {MANY_POINTS} 行的）后半段一直在 0.5±0.05 之内",
        ),
        "margins_rising": Text(
            en=f"the reward margin rises over at least {FEW_POINTS} rows: the model learns the preference",
            zh=f"奖励间隔在至少 {FEW_POINTS} 行内上升：模型正在学到偏好",
        ),
        "learning_rate_zero": Text(
            en="the learning rate is exactly 0 in three consecutive rows, or in both of two "
            "(one at either end is how a schedule begins or ends)",
            zh="学习率连续三行（或仅有的两行都）恰好为 0（首尾各一行属于调度器的正常现象）",
        ),
        "lr_in_warmup": Text(
            en=f"the last learning rate is under {WARMUP_SHARE:.0%} of the configured or seen peak, or still rising: "
            f"too early to judge the loss",
            zh=f"最后的学习率不到配置值（或已见峰值）的 {WARMUP_SHARE:.0%}，或仍在上升：还不能判断 loss",
        ),
        "oom": Text(en="the accelerator ran out of memory", zh="显存不足"),
        "cpu_oom_killed": Text(
            en="a process was killed (signal 9), mostly for host memory", zh="进程被杀死（信号 9），多因内存不足"
        ),
        "nccl_timeout": Text(en="a collective operation timed out", zh="集合通信超时"),
        "nccl_error": Text(en="NCCL reported an error", zh="NCCL 报错"),
        "cuda_error": Text(en="CUDA reported an error", zh="CUDA 报错"),
        "cublas_error": Text(en="cuBLAS reported an error", zh="cuBLAS 报错"),
        "fp16_unscale_error": Text(
            en="the gradient scaler refuses float16 gradients: trainable weights are float16",
            zh="梯度缩放器拒绝 float16 梯度：可训练权重是 float16",
        ),
        "loss_scale_collapse": Text(
            en="the fp16 loss scale fell to its minimum, or ten steps overflowed",
            zh="fp16 的 loss scale 降到最小，或已有十步溢出",
        ),
        "labels_all_ignored": Text(
            en="every label is -100: nothing is trained on", zh="所有 label 都是 -100：没有可训练的内容"
        ),
        "shape_mismatch": Text(en="tensor shapes do not fit", zh="张量形状不匹配"),
        "unrecognized_argument": Text(
            en="the program does not know an option, or refuses its value", zh="程序不认识某个参数，或不接受它的值"
        ),
        "missing_module": Text(en="a Python module is not installed", zh="缺少 Python 模块"),
        "import_error": Text(en="an import fails: packages do not fit each other", zh="导入失败：软件包之间不兼容"),
        "assertion": Text(en="an assertion failed", zh="断言失败"),
        "not_implemented": Text(en="the combination is not implemented", zh="该组合未实现"),
        "value_error": Text(en="a ValueError was raised", zh="抛出了 ValueError"),
        "type_error": Text(en="a TypeError was raised", zh="抛出了 TypeError"),
        "key_error": Text(en="a KeyError was raised", zh="抛出了 KeyError"),
        "file_not_found": Text(en="a file or model does not exist", zh="文件或模型不存在"),
        "connection_error": Text(en="a network connection failed", zh="网络连接失败"),
        "tokenizer_warning": Text(en="the tokenizer warned", zh="分词器发出了警告"),
        "never_stops": Text(
            en=f"over {CLIPPED_RATIO_HIGH:.0%} of the completions run into the length limit in two consecutive "
            "rows, or in the only one",
            zh=f"连续两行（或唯一的一行）有超过 {CLIPPED_RATIO_HIGH:.0%} 的生成触到长度上限",
        ),
        "repeats": Text(en="the user says the model repeats itself", zh="用户称模型不断重复"),
        "throughput_drop": Text(
            en=f"the speed ends at under half of where it began (at least {FEW_POINTS} rows)",
            zh=f"速度末段不到起始的一半（至少 {FEW_POINTS} 行）",
        ),
        "hang": Text(en="the user says the program hangs", zh="用户称程序卡住"),
        "healthy_log": Text(
            en="the log has rows, every number is finite, and no other signal was found in it",
            zh="日志有数据行，所有数值有限，且没有发现其他异常",
        ),
    }
)

NON_FINITE = frozenset(
    {"loss_nan", "loss_inf", "loss_zero_grad_norm_nan", "grad_norm_nan", "grad_norm_inf", "eval_loss_nan"}
    | {"nll_loss_nan", "reward_nan", "logps_nan", "logits_nan", "kl_nan"}
)
"""A number that must stay finite is not."""
BENIGN = frozenset({"lr_in_warmup", "margins_rising", "tokenizer_warning", "healthy_log"})
"""Signals that do not speak against a log being healthy."""
