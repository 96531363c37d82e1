"""The words of `kb.parse.prose`: how users say what goes wrong.

Word boundaries are ASCII ones, so a name between Chinese characters is found. No pattern has nested quantifiers.
"""

from __future__ import annotations

import re

# Phrases that contain a negation themselves ("does not decrease", "显存不足") are not negated by it.
SELF_NEGATED = frozenset({"loss_flat", "reward_flat", "accuracy_stuck", "never_stops", "oom", "cpu_oom_killed"})
JOINED = re.compile(
    r"\s{0,3}+(?:and|or|as well as|和|与|跟|、|,|，|/|&|以及|都|also|还有)\s{0,3}+(?:the |also )?", re.IGNORECASE
)
NOT_FINITE = re.compile(
    r"(?<![A-Za-z0-9_./\\])(?P<what>nans?|inf|infinity|infinite)(?![A-Za-z0-9_(]|\.[A-Za-z])", re.IGNORECASE
)
# NaN in a table of data, or as a word of a program, says nothing about the training.
NOT_TRAINING = re.compile(
    r"data ?(?:set|frame)|csv|pandas|excel|column|数据集|数据里|数据中|某列|字段|空值", re.IGNORECASE
)
SUBJECTS = re.compile(
    r"(?P<eval_loss>(?:eval(?:uation)?|val(?:idation)?)[ _/-]?loss(?:es)?|验证(?:集)?(?: ?loss|损失)|评估(?: ?loss"
    r"|损失))"
    r"|(?P<nll_loss>nll[ _-]?loss)"
    r"|(?P<grad_norm>grad(?:ient)?s?[ _-]?norms?|gradients?(?![A-Za-z_])(?! (?:clip|check|accum|explo))"
    r"|梯度(?:范数)?(?!爆炸|裁剪|检查|累积|累计)"
    r"|(?<![A-Za-z])grads?(?![A-Za-z_]))"
    r"|(?P<loss>(?<![A-Za-z])loss(?:es)?(?![A-Za-z])|损失)"
    r"|(?P<logps>log[ _-]?p(?:s|rob(?:s|abilities)?)(?![A-Za-z]))"
    r"|(?P<logits>logits?)"
    r"|(?P<kl>(?<![A-Za-z])kl(?![A-Za-z]))"
    r"|(?P<reward>rewards?(?![ _-]?(?:model|func))|奖励(?!模型|函数))",
    re.IGNORECASE,
)

_GAP = r"[^.;!?。；！？\n]{0,16}?"
_KL = r"(?<![A-Za-z])kl(?:[ _-]?(?:div(?:ergence)?|散度|loss))?"
_LOSS = r"(?:(?<![A-Za-z])(?<!kl[ _-])(?:train(?:ing)?[ _])?loss(?![A-Za-z])|损失)"

STATED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("loss_zero", rf"{_LOSS}(?:[ =:：]|is|was|are|becomes?|became|goes to|drops? to|stays?(?: at)?|一直|变成|变为"
                      rf"|都|全|就"
                      rf"|直接|始终|恒|降到|掉到|是|为|等于|突然){{1,6}}(?:0(?:\.0{{1,6}})?|zero)(?![0-9.%A-Za-z])"),
        ("loss_flat", rf"{_LOSS}{_GAP}(?:(?:is |gets? |stays? |stuck )?(?:stuck|flat|plateau(?:s|ed)?|constant"
                      rf"|unchanged)|(?:does(?: not|n'?t)|do(?: not|n'?t)|won'?t|not|never"
                      rf"|isn'?t) (?:\w{{1,10}} )?(?:drop|decreas|go(?:ing)? down|converg|improv|chang"
                      rf"|mov)\w{{0,4}}|不下降|不降|没降|降不下|下不去|不收敛|没有(?:明显)?下降|没(?:怎么)?变"
                      rf"|基本不变|不变|不动|卡在|没有变化)"),
        ("loss_diverging", rf"{_LOSS}{_GAP}(?:explod\w{{0,4}}|diverg(?!ence)\w{{0,4}}|bl(?:ow|ew)s? up"
                           rf"|skyrocket\w{{0,3}}|keeps? (?:increasing|rising|growing)|爆炸|爆了|发散|飞了|跑飞|飙升"
                           rf"|越来越大|不断上升|一直上升|持续上升|不降反升)"),
        ("loss_spike", rf"{_LOSS}{_GAP}(?:spik\w{{1,4}}|(?<![A-Za-z])jump(?:s|ed)(?![A-Za-z])|way up|跳高"
                       rf"|突刺|尖刺|毛刺|尖峰|突然升高|突增|突然变大|突然增大)"
                       rf"|(?<![A-Za-z])loss spikes?"),
        ("loss_negative", rf"{_LOSS}{_GAP}(?:(?<![A-Za-z])negative|负数|为负|是负|负的|变负)|negative loss"),
        ("grad_norm_spike", r"gradient explo\w{3,6}|explod\w{2,4} gradients?"
                            r"|grad(?:ient)?[ _]?norm[^.;!?。；！？\n]{0,16}?(?:explod\w{0,4}|spik\w{1,4}|爆炸|huge"
                            r"|很大|飙升"
                            r"|非常大)|梯度爆炸"),
        ("grad_norm_zero", r"grad(?:ient)?[ _]?norm(?: ?(?:与|和|、|and) ?[A-Za-z_]{2,12})?"
                           r"(?:[ =:：]|is|一直|都|全|是|为|始终|恒){1,5}(?:0(?:\.0{1,6})?"
                           r"|zero)(?![0-9.%A-Za-z])|梯度(?:范数)?(?:一直|都|全|始终)?(?:是|为) ?0(?![0-9.])"),
        ("logits_huge", rf"logits?{_GAP}(?:explo[ds]\w{{0,5}}|huge|blow\w{{0,3}} up|enormous|very large|爆炸|巨大"
                        rf"|非常大|异常大"
                        rf"|很大|特别大|太大|-?[0-9.]{{1,6}}e\+?0?[6-9]|1e\+?0?[6-9]|上亿|亿)|logits? (?:explosion"
                        rf"|爆炸)"),
        ("kl_negative", rf"negative {_KL}|{_KL}{_GAP}(?:(?<![A-Za-z])negative|负数|为负|是负|负的|变负|负值)"
                        rf"|{_KL} is starting to become negative"),
        ("kl_huge", rf"{_KL}{_GAP}(?:explod\w{{0,4}}|huge|very (?:large|high)|too (?:large|high)|blow\w{{0,3}} up|爆炸"
                    rf"|keeps? (?:increasing|growing|rising)|越来越大|一直变大|爆了"
                    rf"|很大|巨大|飙升|太大|非常大|太高|很高|特别大)"),
        ("kl_zero", rf"{_KL}(?:[ =:：]|is|was|stays?|always|一直|都|全|始终|恒|是|为|等于){{1,6}}(?:0(?:\.0{{1,6}})?"
                    rf"|zero)(?![0-9.%A-Za-z])"),
        ("oom", r"(?<![A-Za-z])oom(?:s|ed|ing)?(?![A-Za-z]| killer due to high memory)|out[ -]of[ -]memory"
                r"|爆显存|显存(?:不足|不够|溢出|爆|炸)"
                r"|(?<![A-Za-z])爆卡"),
        ("cpu_oom_killed", r"爆内存|内存(?:不足|不够|溢出|爆)(?!.{0,4}显存)|(?:got|was|is|been) killed"
                           r"(?! (?:or was killed )?(?:by (?:sigkill by )?(?:the )?oom killer due to high"
                           r"|while executing a task by an unexpected))|被 ?kill"
                           r"|exit ?code:? -9"
                           r"|sigkill(?! by oom killer due to high)"),
        ("hang", r"(?:training|process|program|script|code|run|job|it|训练|程序|进程|运行|代码|脚本"
                 r"|任务)[^.;!?。；！？\n]{0,12}?(?:hangs?|hung"
                 r"|freez\w{1,3}|frozen|(?:(?:gets? |is |got )stuck|stucks)(?! at [0-9])|卡住|卡死|卡着不动"
                 r"|不动了|挂起|没反应|假死)"
                 r"|(?<![A-Za-z])hangs? (?:at|on|forever|after|in)|hang ?住|(?<!loss )(?<!loss)卡住不动|卡死"
                 r"|在(?:这里|这儿|此处|那里|这一步|这步)[^。；！？\n]{0,3}卡住"
                 r"|卡在 ?(?:了)? ?(?:这里|这儿|此处|那里|这一步|这步|一个地方|某个地方|进度|第一步|初始化|启动|加载"
                 r"|保存|同步|通信|0 ?%|0/[0-9])|(?:这里|此处|这一步|这步)卡住"),
        ("nccl_timeout", r"nccl[^.;!?。；！？\n]{0,20}?(?:time[ -]?d? ?out|超时|watchdog)|通信超时"
                         r"|集合通信[^.;!?。；！？\n]{0,6}超时"),
        ("nccl_error", r"nccl[^.;!?。；！？\n]{0,10}?(?:error|报错|错误)"),
        ("never_stops", r"(?:never|doesn'?t|does not|won'?t|will not|can'?t|cannot) stop(?:s"
                        r"|ping)?(?: generat\w{1,4})?|keeps? generating|停不下来|不会停|不停(?:地|的)?(?:生成|输出"
                        r"|说)|停不了|一直生成"
                        r"|无法停止|不停止|不输出 ?eos|无限生成|(?:不会?|没有?|无法)(?:生成|产生) ?(?:eos|结束符)"
                        r"|(?:fails? to|doesn'?t|does not|never|not|won'?t|can'?t) (?:\w{1,8} )?(?:generat|output|emit"
                        r"|produc|predict)\w{0,3} (?:an? |the |any )?(?:eos|end[- ]of[- ](?:text|sequence|turn))"),
        ("repeats", r"repeat(?:s|ing|ed)?(?: (?:it|them)sel\w{1,4}| tokens?| the same| output| sentences?| forever"
                    r"| endlessly|itive)|repetitive|repetition|复读|重复(?:输出|生成|回答|内容|同)|不断重复|一直重复"
                    r"|全是感叹号|(?:输出|生成|都是"
                    r"|全是|变成)[^.;?。；？\n]{0,8}[!！]{3}"),
        ("reward_hacking", r"reward[- ]?hack\w{0,4}|奖励(?:黑客|欺骗|作弊)|hack(?:s|ing|ed)? (?:the )?reward|刷奖励"),
        ("reward_flat", r"rewards?(?! model)[^.;!?。；！？\n]{0,16}?(?:(?:is |stays? )?(?:stuck|flat|constant)"
                        r"|(?:does(?: not|n'?t)|not|never) (?:increas|improv|ris|go(?:ing)? up|chang)\w{0,4}|不涨"
                        r"|不上升"
                        r"|不变|没有提升|上不去|不提升|涨不上)|奖励[^.;!?。；！？\n]{0,8}?(?:不涨|不上升|不变"
                        r"|没有提升|上不去)"),
        ("reward_collapse", r"rewards?(?! model)[^.;!?。；！？\n]{0,16}?(?:collaps\w{1,4}|(?:drop|fall|goes"
                            r"|go)\w{0,4} to (?:0|zero)|crash\w{0,3}|崩|掉到|骤降|突然(?:变成|变为|下降|降))"
                            r"|奖励[^.;!?。；！？\n]{0,8}?(?:崩|掉到|骤降|变成 ?0|变为 ?0)"),
        ("reward_std_zero", r"(?:reward_std|reward std|frac_reward_zero_std)(?:[ =:：]|is|一直|都|全|是|为"
                            r"|始终){1,5}(?:0(?:\.0{1,6})?|zero)(?![0-9.])"),
        ("entropy_collapse", r"entropy[^.;!?。；！？\n]{0,16}?(?:collaps\w{1,4}|(?:drop|fall|goes)\w{0,4} to (?:0|zero)"
                             r"|坍缩|崩|坍塌)|熵[^.;!?。；！？\n]{0,6}?(?:坍缩|崩|坍塌|塌)"),
        ("length_collapse", r"(?:responses?|completions?|outputs?|answers?"
                            r"|length)[^.;!?。；！？\n]{0,16}?(?:shorter and shorter|collaps\w{1,4})|(?:回复|回答"
                            r"|输出|生成"
                            r"|长度)[^.;!?。；！？\n]{0,8}?(?:越来越短|变短)"),
        ("length_explosion", r"(?:responses?|completions?|outputs?|answers?"
                             r"|length)[^.;!?。；！？\n]{0,16}?(?:longer and longer|explod\w{1,4}|keeps? growing)"
                             r"|(?:回复"
                             r"|回答|输出|生成|长度)[^.;!?。；！？\n]{0,8}?(?:越来越长|变得很长|暴涨)"),
        ("accuracy_stuck", r"(?<![A-Za-z])acc(?:urac(?:y|ies))?(?![A-Za-z])[^.;!?。；！？\n]{0,16}?(?:stuck|around 0\.5"
                           r"|at 0\.5|is 0\.5|不涨|不变|在 ?0\.5|是 ?0\.5|50 ?%)|准确率[^.;!?。；！？\n]{0,8}?(?:不涨"
                           r"|不变|在 ?0\.5"
                           r"|是 ?0\.5|50 ?%)"),
        ("throughput_drop", r"(?:training|throughput|speed)[^.;!?。；！？\n]{0,16}?(?:slower and slower|drops?"
                            r"|slows? down)|(?:越训|训练|速度|越跑)[^.;!?。；！？\n]{0,8}?(?:越来越慢|变慢|越慢)"),
        ("key_error", r"(?<![A-Za-z.])KeyError(?![A-Za-z:])"),
        ("labels_all_ignored", r"labels?[^.;!?。；！？\n]{0,16}?(?:all|全部?|都)[^.;!?。；！？\n]{0,8}?-100"),
    )
)  # fmt: skip
