"""How people word a supposition or a change of topic, in English and Chinese. Data of `service.question.intent`."""

from __future__ import annotations

import re

from trainmedic.kb.parse.readers.versions import PACKAGES


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_IF_I = r"\bif (?:i|we|you)\b"
_TRIES = (
    r"(?:use|used|set|switch|change|turn|go|went|drop|disable|enable|remove|lower|raise|add|upgrade|downgrade|move|run"
    r"|train|skip)"
)
_HELPS = (
    r"(?:help|fix|solve|go away|disappear|be (?:ok|fine|better|enough)|work|matter"
    r"|make (?:a|any) difference|change (?:anything|something))"
)
_WILL = r"\b(?:would|will|does|could|can|should)"
_CHANGES = r"(?:换|改|切|降|升|调|设|用|开|关|去掉|加|减|把|禁用|启用|取消)"
_ASKED = r"(?:会|呢|吗|行|能|可以|怎么样|如何|有用)"
_MADE = r"(?:换|改|切|降|升|调|设|关|去掉|禁用|试)(?:成|为|到|用|掉|过|级到)?"

CLAUSE = re.compile(r"(?:[^\n?？!！。；;.]|\.(?!\s|$)){2,}[?？]?")
"""Sentences, with the mark that ends a question. A full stop inside a number or a name ends nothing."""
STRONG = _any(
    r"\bwhat if\b",
    r"\bwhat (?:happens|would happen|changes|would change) (?:if|when|with)\b",
    r"\bsuppos(?:e|ing)\b|\blet'?s say\b|\bimagine\b|\bassuming\b",
    rf"{_WILL} .{{0,60}}\b{_HELPS}\b.{{0,60}}{_IF_I}",
    rf"\b(?:would|will|could) (?:it|that|this|the \w{{1,20}}) .{{0,60}}\bif (?:i|we) {_TRIES}",
    rf"(?:如果|要是|假如|假设|若是?|倘若).{{0,40}}{_CHANGES}.{{0,60}}{_ASKED}",
)
"""Said in so many words: counts in any message."""
_EXPLICIT = (
    r"\b(?:what|how) about\b",
    r"\band (?:if|with|without)\b",
    r"\bif (?:i|we) \w",
    r"\binstead\b",
    rf"{_WILL} .{{0,60}}\b{_HELPS}\b",
    rf"{_WILL} (?:i|we) {_TRIES}\b",
    rf"\b(?:could|can|should|shall|may) (?:i|we) (?:\w{{1,10}} ){{0,2}}{_TRIES}\b",
    r"\bthen\s?[?？]|\bany chance\b|^\W{0,4}should it be\b|会不会",
    r"(?:打开|启用|关|开|加|用|换|设).{1,40}(?:吗|呢|会|行|有用|有影响|[?？])",
    r"^\W{0,4}(?:would|will|could) ",
    r"^\W{0,4}(?:and |or |but |ok |okay |so ){0,2}(?:with|without|using)\b",
    r"\btry(?:ing)?\b",
    r"\bswitch(?:ing)?\b",
    r"(?:换成|改成|改为|改用|换用|换到|切到|切换|降到|升到|降级到|升级到|调到|设成|设为|不用|不开|关掉|关闭|去掉|禁用)"
    rf".{{0,60}}(?:{_ASKED}|[?？])",
    r"如果|要是|假如",
    r"用.{1,30}(?:会|呢|吗|行)",
    r"把.{1,40}呢",
)
EXPLICIT = _any(*_EXPLICIT)
WEAK = _any(STRONG.pattern, *_EXPLICIT, r"[?？呢吗]")
"""Enough in a message that follows others."""
REPORTED = _any(
    r"(?<!if )(?<!should )(?<!could )(?<!can )(?<!shall )(?<!may )"
    r"\b(?:i|we) (?:get|got|see|saw|have|had|tried|already|am|was|are|were|switched|changed|upgraded|set|use"
    r"|used|ran|run|did|do|don't|can't|cannot)\b",
    r"\bi'(?:m|ve)\b|^\W*(?:is|are|was) ",
    r"\bstill (?:nan|fails|crash|the same|get|oom|happens|not)",
    r"\b(?:but )?now (?:it|i|the|we)\b",
    r"\b(?:why|how come|how do|how can|how to|where|which|when do) ",
    r"\bgives? me\b|\bafter (?:upgrad|downgrad|switch|chang|updat|mov|go)ing\b",
    rf"{_MADE}.{{0,20}}了(?!吗|呢|会)",
    r"\btoo (?:small|big|high|low|large)\b|\bnormal\b|正常|是不是|要不要|太[大小高低]",
    r"试过|已经|之后|以前|后还是|依然|仍然|还是(?:报|不行|一样|nan|会)|为什么|(?:怎么|如何|怎样)(?:设|写|改|配|把|换|用)",
)
"""Something that was done or is, or a question about how: no supposition."""
INSTEAD = _any(
    r"\b(?:instead of|rather than|in place of)\s{1,3}([\w.+-]{1,40}(?:[ -](?:stage |attention|[0-9])[\w.]{0,12})?)",
    r"\bfrom\s{1,3}([\w.+-]{1,40})(?=\s{1,3}to\b)",
    r"(?:从|由)\s?([^，,。？?]{1,30}?)(?=\s?(?:换|改|切|降|升|调|到))",
    r"(?:而不是|代替|替代|取代)\s?([^，,。？?]{1,30})",
    r"把\s?((?:bf16|fp16|fp32|bfloat16|float16|half|zero[-_ ]?[0-3]|flash[-_ ]?att\w{0,8}(?:[-_ ]?[23])?|fa[23]|sdpa"
    r"|eager)\s?)(?=换|改|切)",
)
"""What it is now: never the value that is supposed."""
OFF = _any(
    r"\bwithout\b|\bno\b|\bdisabl\w{1,4}\b|\bdrop(?:ping)?\b|\bremov\w{1,4}\b|\bget rid of\b",
    r"\boff\b",
    r"\bdon'?t use\b|\bnot (?:use|using)\b",
    r"不打包|不用|不开|不打开|不启用|关掉|关闭|关了|去掉|禁用|取消|不加|不做|不使用|没有",
)
STAGE = _any(
    r"(?<![A-Za-z0-9])(?:deepspeed[-_ ]?)?zero[-_ ]?(?:stage[-_ ]?|阶段 ?)?([0-3])(?![0-9.])",
    r"(?<![A-Za-z0-9])stage[-_ ]?([0-3])(?![0-9.])",
    r"(?<![A-Za-z0-9])z([123])(?![0-9A-Za-z])",
)
ATTENTION: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", re.IGNORECASE))
    for name, pattern in (
        ("eager", r"eager|原生注意力"),
        ("sdpa", r"sdpa|scaled dot product attention"),
        ("flex", r"flex[-_ ]?attention"),
        ("flash3", r"flash[-_ ]?att(?:ention|n)?[-_ ]?3|fa3"),
        ("flash2", r"flash[-_ ]?att(?:ention|n)?(?:[-_ ]?2)?|fa2|flash"),
    )
)
PRECISION: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("bf16", re.compile(r"(?<![A-Za-z0-9])(?:bf16|bfloat16)(?![A-Za-z0-9])", re.IGNORECASE)),
    ("fp16", re.compile(r"(?<![A-Za-z0-9])(?:fp16|float16|half precision|半精度)(?![A-Za-z0-9])", re.IGNORECASE)),
)
_NUMBER = r"(?P<value>[-+]?[0-9]{1,12}(?:\.[0-9]{1,8})?(?:[eE][-+]?[0-9]{1,3})?)(?![0-9A-Za-z])"
_TO = (
    r"(?:\s{0,3}(?:size|steps|of|is|to|at|as|=|:|：|were|be|设成|设为|设置为|改成|改为|换成|调成|调到|降到|升到|降为"
    r"|变成|成|为|到|是|用)){0,3}\s{0,3}"
)
NUMBERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?<![A-Za-z0-9])(?:{pattern}){_TO}{_NUMBER}", re.IGNORECASE))
    for name, pattern in (
        ("learning_rate", r"learning rate|lr|学习率"),
        (
            "micro_batch",
            r"(?:micro[- ]?|per[- ]device |mini[- ]?|train )?batch(?:[- ]?size)?|micro[-_ ]?bs|bs"
            r"|微批(?:次|大小)?|单卡 ?batch",
        ),
        ("gradient_accumulation", r"(?:gradient |grad )?accum(?:ulation)?(?: steps)?|梯度累[积计](?:步数)?"),
        ("max_length", r"max(?:imum)?[- ]?(?:seq(?:uence)?[- ]?)?len(?:gth)?|cutoff[- ]?len|最大长度|序列长度|长度"),
        ("warmup_ratio", r"warm-?up ratio|预热比例"),
        ("warmup_steps", r"warm-?up steps|预热步数"),
        ("max_grad_norm", r"(?:max )?grad(?:ient)?[- ](?:norm|clip(?:ping)?)|clip(?:ping)?|梯度裁剪(?:阈值)?"),
        ("lora_rank", r"(?:lora )?rank|lora r"),
        ("lora_alpha", r"(?:lora )?alpha"),
        ("epochs", r"epochs?|轮数"),
        ("beta", r"beta"),
        ("kl_coef", r"(?:init )?kl(?: coef(?:ficient)?| 系数)?"),
        ("temperature", r"temperature|温度"),
        ("num_generations", r"num generations|group size|generations|组大小"),
        ("num_gpus", r"num gpus|gpus?|卡数"),
        ("sequence_parallel", r"sequence parallel|sp|序列并行"),
    )
)
OPTION = re.compile(
    r"(?P<name>--[A-Za-z][A-Za-z0-9_.-]{1,60}|[A-Za-z][A-Za-z0-9.]{0,40}_[A-Za-z0-9_.]{1,60}|[A-Za-z]\w{1,60}(?==))"
    r"(?:\s?[=：:]\s?|\s{1,2}(?:to |as |is )|\s{1,2}(?=[-0-9]|true|false|none|auto|\w{1,30}[_0-9])"
    r"|\s?(?:设成|设为|改成|改为|换成|成|为)\s?)"
    r"(?P<value>(?!(?:to|as|is|at|instead|off|and|or|help|be|in|for|if)\b)[A-Za-z0-9_.+/-]{1,60})"
)
"""A name with a value behind it; whether the name is an option's, the catalogues tell."""
FLAG = re.compile(r"(?<![A-Za-z0-9_.-])(?:--(?=[A-Za-z])|(?=[A-Za-z0-9]+_))(?P<name>[A-Za-z][A-Za-z0-9_.-]{1,60})")
"""An option by its name alone."""
VERSION_OF = re.compile(
    r"(?<![A-Za-z0-9_/.-])(?P<name>"
    + "|".join(re.escape(name).replace(r"\-", "[-_ ]?") for name in sorted(PACKAGES, key=len, reverse=True))
    + r")(?![A-Za-z0-9_])"
    r"(?:\s{0,2}(?:version|ver|==|=|v|to|版本|升级到|升到|降级到|降到|退回到?|回退到|换成|换到|改成|用|是)){0,3}\s{0,2}v?"
    r"(?P<version>[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?:\.?(?:dev|rc|post)[0-9]{1,3})?)",
    re.IGNORECASE,
)

NEW_TOPIC = _any(
    r"\b(?:different|another|new|separate|unrelated|other) (?:question|issue|problem|topic|thing|run|project|training"
    r"|job|experiment|model)\b",
    r"\bunrelated\s{0,2}[:,]|\bon (?:another|a \w{0,10} ?different) note\b",
    r"\bswitching topics?\b|\bchanging (?:the )?(?:topic|subject)\b",
    r"\bforget (?:that|about that|the (?:above|previous|last))\b|\bnot about (?:that|this) (?:run|one)\b",
    r"\bsomething else\s{0,2}[:,]",
    r"另(?:外)?一个(?:问题|训练|实验|项目|任务|模型)|换(?:一?个)(?:问题|话题|训练|任务)|再(?:问|请教)(?:一?个|你)",
    r"新(?:的)?问题|(?:别|其他)的?问题|不相关的?|另外(?:再)?问|(?:和|跟)(?:上面|前面|刚才)(?:的)?(?:无关|没关系)",
    r"不是(?:刚才|上面)(?:那|的)|(?:别|其他)的?事",
    r"\balso (?:have|run|train|got) an? (?:\w{1,20} ){0,2}(?:job|run|project|training|experiment)\b",
)
SAME_RUN = _any(
    r"\b(?:same|this|that) (?:run|config|configuration|setup|script|job|training)\b",
    r"(?:同一个|这个|上面的|刚才的)(?:配置|脚本|训练|任务)",
)
CONTINUES = _any(
    r"\b(?:also|too|as well|additionally|besides|in addition|at the same time|again|because of (?:this|that))\b",
    r"\bsame (?:error|problem|thing|nan|symptom)\b|\bby the way, (?:it|the)\b",
    r"同时|也(?:是|会|有|出现|一样|变)|还(?:有|会|出现)|一样的|此外|除此之外|顺便说",
)
SOLVED = _any(
    r"\b(?:that|it|this)(?:'s| is| was)? (?:now )?(?:solved|fixed|resolved|gone)\b|^\W*(?:solved|fixed|resolved)\b",
    r"\b(?:that|it|this|which) (?:works|starts|runs) now\b",
    r"\bnext (?:one|problem|question|issue)\b|^\W*next\s?:",
    r"解决了|修好了|搞定|已经好了|下一个问题",
)
"""What was asked before is over."""
COMPARES = _any(
    r"\b(?:works?|worked|fine|no problem|same|identical|ok)\b",
    r"正常|没问题|没事|可以跑|能跑|一样|同样",
)
"""Another framework or algorithm is named to compare with, not to ask about."""
