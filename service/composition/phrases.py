"""The fixed words of a composed answer, in both languages. Data only."""

from __future__ import annotations

from trainmedic.kb.model.report import Text

RECEIPT = Text(en="Read: {inputs}.", zh="已读取：{inputs}。")
MASKED = Text(en="Masked before anything else saw it: {masked}.", zh="已在处理前脱敏：{masked}。")
PROBLEMS = Text(en="Not read as it stands: {problems}.", zh="未能照原样读取：{problems}。")
LINES = Text(en="{name} ({kind}, lines: {lines}{cut})", zh="{name}（{kind}，{lines} 行{cut}）")
CUT = Text(en=", cut", zh="，已截断")
QUESTION = Text(en="your question", zh="你的问题")

LEAD = {
    "answered": Text(en="**{title}** {marker}", zh="**{title}** {marker}"),
    "no_fault": Text(
        en="**Nothing is wrong with the run here: {title}** {marker}", zh="**这里训练本身没有问题：{title}** {marker}"
    ),
    "healthy": Text(
        en="**No fault found.** No rule points to one, and every number in the log is finite and ordinary.",
        zh="**没有发现故障。** 没有规则指向故障，日志里的数值都有限且正常。",
    ),
    "healthy_config": Text(
        en="**No fault found in the configuration.** No rule points to one. Without a log nobody can tell how it runs.",
        zh="**配置中没有发现故障。** 没有规则指向故障。没有日志时，无法判断运行时的表现。",
    ),
    "need_input": Text(
        en="**Not enough to tell the cause yet.** What would decide it:",
        zh="**信息还不足以判断原因。** 下面的信息能帮助判断：",
    ),
    "not_in_kb": Text(
        en="**The knowledge base holds no case for this.** I would rather say so than guess.",
        zh="**知识库里没有对应的案例。** 与其猜测，不如如实告知。",
    ),
    "not_in_kb_found": Text(
        en="**No case covers what you describe, but the rules found a fault in what you pasted.** Put it right first.",
        zh="**没有案例对应你描述的现象，但规则在你粘贴的内容里发现了错误。** 请先改正它。",
    ),
}
GRADED = Text(en="Evidence: {grade}.", zh="证据：{grade}。")
SURE = Text(en="Confidence: {confidence}; evidence: {grade}.", zh="置信度：{confidence}；证据：{grade}。")
CONFIDENCE = {
    "high": Text(en="high", zh="高"),
    "medium": Text(en="medium", zh="中"),
    "low": Text(en="low", zh="低"),
}
GRADE = {
    "reproduced": Text(en="reproduced", zh="已复现"),
    "maintainer": Text(en="stated by a maintainer", zh="维护者确认"),
    "reporter": Text(en="stated by the reporter", zh="提问者确认"),
    "source-read": Text(en="read in the framework's source", zh="源码核实"),
    "reported": Text(en="reported, not confirmed by anybody", zh="有人报告，尚无人确认"),
}
HEADINGS = {
    "cause": Text(en="Why", zh="原因"),
    "seen": Text(en="In what you pasted", zh="在你粘贴的内容中"),
    "fix": Text(en="Fix", zh="修复"),
    "patch": Text(en="The change in your own text", zh="在你的原文上的修改"),
    "refuted": Text(en="Does not help", zh="无效的做法"),
    "confirm": Text(en="How to confirm", zh="如何确认"),
    "likely": Text(en="Most likely so far", zh="目前最可能的原因"),
    "other": Text(en="Also possible", zh="其他可能"),
    "ask": Text(en="To be surer, tell me", zh="想更确定，请告诉我"),
    "listed": Text(en="Also found in what you pasted", zh="粘贴内容里另外发现"),
    "unsure": Text(en="Could not be checked", zh="无法检查"),
}
PATCH = Text(en="Applied in memory and checked again: clears {clears}.", zh="已在内存中应用并复查：消除 {clears}。")
APPEARS = Text(en=" It brings up {appears}.", zh=" 会新触发 {appears}。")
NO_MODEL = Text(
    en="No language model is configured: this answer was composed from the rules and cases alone.",
    zh="未配置语言模型：本回答完全由规则和案例生成。",
)
AS_ASKED = Text(
    en="Composed from the rules and cases alone, as asked; the language model was not used.",
    zh="按要求仅由规则和案例生成，未使用语言模型。",
)
AT = Text(en="{place}: `{text}`", zh="{place}：`{text}`")
DEFAULT = Text(en="{place}: not written, a default", zh="{place}：未显式设置，取默认值")
NOTHING_TO_WRITE = Text(
    en="The language model was not asked: no case or rule of the knowledge base could carry what it would say.",
    zh="没有调用语言模型：知识库里没有可以支撑其说法的案例或规则。",
)
MODEL_FAILED = Text(
    en="The language model gave no usable text ({why}); this answer was composed from the rules and cases alone.",
    zh="语言模型没有给出可用的文本（{why}）；本回答完全由规则和案例生成。",
)
FAILURES = {
    "absent": Text(en="it cannot be reached", zh="无法连接"),
    "slow": Text(en="it took too long", zh="超时"),
    "refused": Text(en="it refused the request", zh="请求被拒绝"),
    "overloaded": Text(en="it is overloaded", zh="负载过高"),
    "server_error": Text(en="it reported an error of its own", zh="服务端报错"),
    "cut": Text(en="its text broke off", zh="文本中途中断"),
    "garbage": Text(en="what it sent could not be read", zh="返回内容无法读取"),
    "unknown_model": Text(en="it does not serve the model asked for", zh="没有所请求的模型"),
    "too_long": Text(en="the question does not fit its context", zh="内容超出其上下文长度"),
    "busy": Text(en="too many texts are being written", zh="同时生成的文本太多"),
    "open": Text(en="it failed several times running and is left alone for a while", zh="连续多次失败，暂时停用"),
}
WITHDRAWN = Text(
    en="Sentences of the model taken out because they contradict a finding or recommend what does not help: {count}.",
    zh="因与检查结果矛盾、或推荐无效做法而删去的模型语句数：{count}。",
)
LEAKED = Text(
    en="Passages taken out of the model's text because they repeat its own instructions: {count}.",
    zh="因复述自身指令而从模型文本中删去的段落数：{count}。",
)
CUT_SHORT = Text(
    en="The model's text reached its limit of length; its last, unfinished sentence was left out.",
    zh="模型的文本达到长度上限，最后未写完的句子已略去。",
)
FLAGGED = Text(
    en="Named by the model, but in no evidence and no catalogue: {names}.",
    zh="模型提到、但任何证据和参数目录中都没有的名称：{names}。",
)
AND_MORE = Text(en="{names} and {count} more", zh="{names} 等，另有 {count} 个")
UNKNOWN_MARKERS = Text(
    en="Citations of the model that point at nothing, removed: {count}.",
    zh="已移除模型中没有对应来源的引用数：{count}。",
)
LEFT_OUT = Text(en="Not shown to the model for lack of room: {what}.", zh="因篇幅限制未给模型看的内容：{what}。")
NOT_TEXT = Text(
    en="Not read, for only text is: {parts}. Paste what it shows as text.",
    zh="以下内容不是文本，未读取：{parts}。请把其中的内容以文本形式粘贴。",
)
PLACES = Text(en="pasted places", zh="粘贴内容中的位置")
EARLIER = Text(en="earlier turns", zh="之前的对话")
NAMES_HERE = Text(
    en="In {framework} these options are called otherwise: {names}.",
    zh="这些选项在 {framework} 里的名字不同：{names}。",
)
SUPPOSED = Text(
    en="**Supposing {changes}**, the rules over your configuration say:",
    zh="**假设 {changes}**，规则对你的配置的判断是：",
)
SUPPOSED_ONE = Text(en="`{name}` = `{after}` (now `{before}`)", zh="`{name}` = `{after}`（现在是 `{before}`）")
SUPPOSED_NEW = Text(en="`{name}` = `{after}` (now not known)", zh="`{name}` = `{after}`（现在的值未知）")
SUPPOSED_EFFECTS = {
    "clears": Text(en="no longer found: {titles}", zh="不再触发：{titles}"),
    "appears": Text(en="newly found: {titles}", zh="新触发：{titles}"),
    "stays": Text(en="still found: {titles}", zh="仍然触发：{titles}"),
    "logged": Text(
        en="seen in the log of the run before, so only a new run can tell: {titles}",
        zh="来自之前那次运行的日志，只有重新运行才能确定：{titles}",
    ),
    "nothing": Text(en="no finding goes away and none comes up", zh="没有发现消失，也没有新的发现"),
}
SUPPOSED_CAUSE = {
    "stands": Text(en="The likeliest cause still stands.", zh="最可能的原因依然成立。"),
    "falls": Text(en="The likeliest cause no longer holds then.", zh="这样一来，最可能的原因不再成立。"),
    "touched": Text(
        en="The change is about what the likeliest cause is about, but no rule decides it: see that cause below.",
        zh="这一改动正涉及最可能的原因，但没有规则能就此下结论：请看下文对该原因的说明。",
    ),
    "open": Text(
        en="The change is about nothing that the likeliest cause names, so that cause still stands.",
        zh="这一改动与最可能的原因所涉及的内容无关，该原因依然成立。",
    ),
}
SUPPOSED_SAME = Text(en="**Nothing changes: {names} is so already.**", zh="**没有变化：{names} 当前已是该值。**")
SUPPOSED_NOT = Text(en="Not tried: `{name}` ({why}).", zh="未尝试：`{name}`（{why}）。")
UNCHANGED = Text(
    en="*The answer is the same as before:*",
    zh="*回答与之前相同：*",
)
UNCHANGED_AS_IS = Text(
    en="*For the run as you pasted it, the answer is as before:*",
    zh="*对您贴出的这次运行本身，回答与之前相同：*",
)
UNREAD_TURNS = Text(
    en="Earlier messages of this conversation that were not read again for this answer: {count}.",
    zh="本次回答没有重新读取的较早对话消息数：{count}。",
)
