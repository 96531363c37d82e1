"""What the bot says itself, in both languages. Data only."""

from __future__ import annotations

from trainmedic.kb.model.report import Text

HELP = Text(
    en=(
        "Paste the launch command, the config, the log or the `pip list` of a training run, or attach them as text "
        "files, and say what is wrong. I answer in the thread; the whole thread counts as evidence.\n"
        "• In a channel: mention me. A mention without words in a thread diagnoses that thread.\n"
        "• Here in our direct messages: just write.\n"
        "• On any message: ⋯ → *Diagnose this*.\n"
        "• `/trainmedic QUESTION` answers you alone, `/trainmedic status` shows versions and missing permissions."
    ),
    zh=(
        "把训练任务的启动命令、配置、日志或 pip list 贴出来，或作为文本文件附上，并说明问题。我会在消息串中回答，"
        "整个消息串都算作证据。\n"
        "• 在频道中：提及我。在消息串里只提及我、不写文字，即诊断该消息串。\n"
        "• 在与我的私信中：直接写。\n"
        "• 任意消息：⋯ → Diagnose this。\n"
        "• `/trainmedic 问题` 只回答你本人，`/trainmedic status` 显示版本和缺少的权限。"
    ),
)
WORKING = Text(en="Reading…", zh="正在读取……")
READING = Text(en="Read what was pasted and checked the rules", zh="已读取内容并检查规则")
WRITING = Text(en="Writing the explanation", zh="正在撰写说明")
FAILED = Text(
    en="Sorry, this could not be answered: {message}. {hint}Trace id: `{trace_id}`",
    zh="抱歉，未能回答：{message}。{hint}跟踪编号：`{trace_id}`",
)
UNEXPECTED = Text(en="something went wrong on our side", zh="我们这边出了问题")
BUSY = Text(
    en="too many questions are being answered right now; please ask again in a minute",
    zh="正在回答的问题太多，请稍后再问",
)
UNREADABLE_THREAD = Text(
    en="(The earlier messages of this thread could not be read: {why}.)",
    zh="（无法读取此消息串中较早的消息：{why}。）",
)
NOT_COVERED = Text(
    en="The knowledge base does not cover this well enough to answer in this channel: {verdict}.",
    zh="知识库对此覆盖不足，不在本频道作答：{verdict}。",
)
STOPPED = Text(en="Stopped.", zh="已停止。")
THANKS = {
    "up": Text(en="Thank you, noted: it helped.", zh="谢谢，已记录：有帮助。"),
    "down": Text(
        en="Noted: it did not help. Say in the thread what is different, or add the log, and mention me again.",
        zh="已记录：没有帮助。请在消息串中说明不同之处或补充日志，再次提及我。",
    ),
}
RESOLVED = Text(
    en="<@{user}> marked this as resolved. A draft case (`{draft}`) waits for review.",
    zh="<@{user}> 已标记为解决。草稿案例（`{draft}`）等待审核。",
)
RESOLVED_ONLY = Text(
    en="<@{user}> marked this as resolved. No conversation is kept, so no draft case was written.",
    zh="<@{user}> 已标记为解决。未保存对话，因此没有写草稿案例。",
)
ASKED_HUMAN = Text(
    en="{group} <@{user}> asks for a human to look at this.", zh="{group} <@{user}> 请人协助查看此问题。"
)
SUMMARY = {
    "question": Text(en="Question", zh="问题"),
    "verdict": Text(en="Verdict", zh="结论"),
    "causes": Text(en="Candidates", zh="候选原因"),
    "missing": Text(en="Not known", zh="尚不清楚"),
    "where": Text(en="Conversation", zh="对话"),
}
HUMAN_TOLD = Text(en="A human has been asked.", zh="已请人协助。")
SHARED = Text(en="Shared by <@{user}>", zh="由 <@{user}> 分享")
GONE = Text(
    en="This answer is no longer kept; please ask again.",
    zh="此回答已不再保存，请重新提问。",
)
NOT_IN_CHANNEL = Text(
    en="I am not in this channel, so only you can see this. Invite me to let others see it.",
    zh="我不在此频道，因此只有你能看到。邀请我加入后其他人才能看到。",
)
NOT_READ = {
    "image": Text(en="image; paste the text instead", zh="图片；请改贴文字"),
    "binary": Text(en="not a text file", zh="不是文本文件"),
    "large": Text(en="larger than {limit} MiB; send the end of it", zh="超过 {limit} MiB；请发送末尾部分"),
    "many": Text(en="more than {limit} files", zh="超过 {limit} 个文件"),
    "deleted": Text(en="deleted", zh="已删除"),
    "hidden": Text(en="hidden by the workspace's plan", zh="因工作区方案限制而不可见"),
    "external": Text(en="not stored on Slack; attach the file itself", zh="未存储在 Slack；请附上文件本身"),
    "denied": Text(en="I have no access to it", zh="我无权访问"),
    "scope": Text(en="the app lacks the permission files:read", zh="应用缺少 files:read 权限"),
    "login": Text(
        en="Slack sent its login page: is files:read granted and the token valid?",
        zh="Slack 返回了登录页：是否已授予 files:read 权限且令牌有效？",
    ),
    "elsewhere": Text(en="its address is not Slack's", zh="其地址不属于 Slack"),
    "failed": Text(en="could not be downloaded ({why})", zh="无法下载（{why}）"),
}
PROMPTS_TITLE = Text(en="What is wrong with the run?", zh="训练出了什么问题？")
PROMPTS = (
    (
        Text(en="Loss is NaN", zh="loss 变成 NaN"),
        Text(
            en="The loss becomes NaN after a few steps. What do you need from me to find out why?",
            zh="训练几步后 loss 变成 NaN，需要我提供哪些信息来排查？",
        ),
    ),
    (
        Text(en="Out of memory", zh="显存不足"),
        Text(
            en="Training dies with CUDA out of memory. What should I look at first?",
            zh="训练报 CUDA out of memory，应该先看什么？",
        ),
    ),
    (
        Text(en="DPO rewards look wrong", zh="DPO reward 异常"),
        Text(
            en="In DPO both chosen and rejected rewards go down. Is that a fault?",
            zh="DPO 训练中 chosen 和 rejected 的 reward 都在下降，这是故障吗？",
        ),
    ),
    (
        Text(en="Check a launch command", zh="检查启动命令"),
        Text(
            en="Please check this launch command for mistakes: (paste it here)",
            zh="请检查这条启动命令有没有问题：（贴在这里）",
        ),
    ),
)
STATUS = {
    "title": Text(en="trainmedic {version}", zh="trainmedic {version}"),
    "knowledge": Text(en="Cases: {cases} · rules: {rules}", zh="案例：{cases} · 规则：{rules}"),
    "versions": Text(
        en="Knowledge base {kb} · rule set {rules} · index {index}", zh="知识库 {kb} · 规则集 {rules} · 索引 {index}"
    ),
    "failed_pages": Text(en="Pages that failed to load: {count}", zh="加载失败的页面：{count}"),
    "no_model": Text(
        en="Language model: none; answers are composed from rules and cases", zh="语言模型：无；回答由规则和案例生成"
    ),
    "model": Text(en="Language model: reachable", zh="语言模型：可用"),
    "model_down": Text(en="Language model: {why}; answers are composed", zh="语言模型：{why}；回答由程序生成"),
    "scopes": Text(en="Permissions: all that are used", zh="权限：齐全"),
    "missing": Text(
        en="Missing permission {scope}: {feature}. Add it to the app and reinstall it.",
        zh="缺少权限 {scope}：{feature}。请为应用添加并重新安装。",
    ),
    "delivery": Text(en="Events: {how} · running questions: {count}", zh="事件：{how} · 正在处理的问题：{count}"),
}
FEATURES = {
    "app_mentions:read": Text(en="mentions are not seen", zh="看不到提及"),
    "chat:write": Text(en="nothing can be answered", zh="无法回答"),
    "channels:history": Text(en="threads of public channels cannot be read", zh="无法读取公共频道的消息串"),
    "groups:history": Text(en="threads of private channels cannot be read", zh="无法读取私有频道的消息串"),
    "im:history": Text(en="direct messages cannot be read", zh="无法读取私信"),
    "files:read": Text(en="attached files cannot be read", zh="无法读取附件"),
    "commands": Text(en="no /trainmedic and no shortcut", zh="没有 /trainmedic 命令和快捷方式"),
    "assistant:write": Text(en="no suggested prompts", zh="没有建议的问题"),
}
