"""Whether a question is about a neighbour of training: serving a model, converting it, another kind of learning. Pure.

Such questions share our words ("gguf", "vllm", "slow", "out of memory") and would be given a cause of a training run.
"""

from __future__ import annotations

import re

from trainmedic.kb.model.evidence import Evidence

OTHER_LEARNING = re.compile(
    r"\bkeras\b|\btensorflow\b|\bxgboost\b|\blightgbm\b|\bcatboost\b|\bsk-?learn\b|scikit|\btabular\b|\bmnist\b|"
    r"\bcifar|\bresnet|\byolo|\bmap50\b|\bstable[- ]diffusion\b|\bsdxl\b|\bkohya|\bcomfyui\b|文生图|绘图|表格数据",
    re.IGNORECASE,
)
"""Other kinds of learning: a NaN there is not ours either."""
BESIDE_TRAINING = re.compile(
    r"\bllama[._-]?cpp\b|\bgguf\b|\bollama\b|\blm[ -]studio\b|text-generation-(?:webui|inference)|\boobabooga|"
    r"\bkobold|\btgi\b|\bvllm serve\b|\blmdeploy\b|\btensorrt|\btriton (?:inference )?server|\bxinference\b|"
    r"\blang(?:chain|graph)\b|\bllama-?index\b|\brag\b|\bdify\b|\bfastgpt\b|\btiktoken\b|\bprompt engineering\b|"
    r"\b(?:best|good|better) (?:system )?prompt\b|\bembedding models?\b|\bvector (?:db|store|database)\b|"
    r"\bmodel serving\b|\bserv(?:e|ing) (?:a|the|my|this) model\b|\b(?:online|llm) serving\b|\binference\b|\bdeploy|"
    r"提示词|向量(?:库|数据库|模型)|知识库问答|部署|推理",
    re.IGNORECASE,
)
"""Tools and tasks that need no training."""
_INSTALLS = r"(?:cuda|cudnn|(?:nvidia |显卡)?driver|驱动|docker|conda|anaconda|wsl2?|ubuntu|python)"
HOW_TO = re.compile(
    rf"\bhow (?:do i|can i|to|should i) (?:install|download|set up) {_INSTALLS}\b|\binstall(?:ing)? {_INSTALLS}\b|"
    rf"(?:安装|装|下载)一?下?\s?{_INSTALLS}|{_INSTALLS}\s?[0-9.]{{0,6}}\s?(?:怎么|如何)(?:安装|装|下载)|"
    r"\b(?:write|generate|give|show|make) (?:me |us )?(?:an?|the|some|complete|full)[\w ,-]{0,40}"
    r"(?:script|code|notebook|tutorial)\b|"
    r"(?:帮我|给我|请)?(?:写|生成|来|给)一?(?:个|份|段|篇)[^，。,.?？\n]{0,30}(?:脚本|代码|教程)",
    re.IGNORECASE,
)
"""A program is to be installed or written: nothing has run yet."""
TRAINS = re.compile(
    r"train|fine-?\s?tun|finetun|\bsft\b|lora\b|\badapters?\b|\b(?:dpo|kto|orpo|simpo|grpo|ppo|rloo|rlhf|gspo|dapo)\b|"
    r"\brl\b|\breward|\bpolicy\b|\brollout|\bactor\b|\bcritic\b|\bepochs?\b|\bloss\b|\bgrad|\boptimi[sz]er|"
    r"\bdeepspeed\b|\bzero-?[123]\b|\bfsdp\b|\bunsloth\b|\btrl\b|\bpeft\b|\bcheckpoint-\d|weight sync|sleep mode|"
    r"\b(?:weights?|params?|parameters?) updates?\b|(?<!培)训|微调|强化学习|奖励|权重同步|更新权重|学习率|梯度",
    re.IGNORECASE,
)
"""Something is trained, or was."""
AFTER_TRAINING = re.compile(r"\bmerg|\bexport|\bsave_pretrained|合并|导出", re.IGNORECASE)
"""What is done with a trained model next. Alone it does not say that the training is asked about."""
SPOILT_OUTPUT = frozenset({"garbage-output", "repetition", "never-stops", "token-not-output", "unchanged-model"})
"""Concepts of the glossary: the model's answers are bad, which the training may have done."""


def is_elsewhere(question: str, evidence: Evidence, concepts: frozenset[str]) -> bool:
    """Whether another tool or task is asked about, and nothing recognised or said is of training."""
    run = evidence.run
    if run.framework or run.algorithm or run.options or evidence.rows:
        return False
    if OTHER_LEARNING.search(question):
        return True
    if HOW_TO.search(question) and not evidence.tracebacks and not evidence.signals:
        return True
    if not BESIDE_TRAINING.search(question) or TRAINS.search(question):
        return False
    return not (AFTER_TRAINING.search(question) and concepts & SPOILT_OUTPUT)
