"""What readers see of an investigation: its steps and why one was not finished, in both languages. Data only."""

from __future__ import annotations

from trainmedic.kb.model.report import Text

UNFINISHED = Text(
    en="The investigation was not finished ({why}); this answer was composed from the rules and cases alone.",
    zh="调查没有完成（{why}）；本回答完全由规则和案例生成。",
)
WHY = {
    "no_tools": Text(
        en="the endpoint does not take tool calls; vLLM needs --enable-auto-tool-choice and --tool-call-parser",
        zh="服务端不接受工具调用；vLLM 需要 --enable-auto-tool-choice 和 --tool-call-parser",
    ),
    "arguments": Text(
        en="the model kept calling tools in a way that cannot be read", zh="模型多次以无法识别的方式调用工具"
    ),
    "loop": Text(en="the model kept asking for the same thing", zh="模型反复查询同一内容"),
    "steps": Text(en="the model wanted more steps than are allowed", zh="模型需要的步骤超过上限"),
    "unsupported": Text(en="nothing that the model wrote stands in a source", zh="模型写的内容没有任何来源支持"),
    "look_up": Text(en="a look-up failed", zh="一次查询出错"),
}
ADDED = Text(en="**What the investigation adds** (written by the model)", zh="**调查的补充**（由模型撰写）")
CATALOGUE = Text(en="*(option catalogue: {name})*", zh="*（参数目录：{name}）*")

SEARCHED = Text(en="Searched the cases for “{query}”: {count} found", zh="检索案例“{query}”：找到 {count} 个")
READ_CASE = Text(en="Read the case “{title}”", zh="阅读案例“{title}”")
CHECKED = Text(
    en="Checked the configuration with {changes}: {clears} clear, {appears} appear, {stays} stay",
    zh="按 {changes} 复查配置：消除 {clears} 项，新增 {appears} 项，仍有 {stays} 项",
)
NOT_CHANGED = Text(en="Could not change {names} in the configuration", zh="无法在配置中修改 {names}")
LOOKED_UP = Text(en="Looked up {option} of {framework}: {outcome}", zh="查询 {framework} 的参数 {option}：{outcome}")
EXISTS = Text(en="it is there", zh="存在")
MISSING = Text(en="not in its catalogue", zh="目录中没有")
READ_LINES = Text(en="Read lines {first}–{last} of {name}", zh="阅读 {name} 的第 {first}–{last} 行")
REFUSED = Text(en="A call of {tool} that could not be carried out", zh="一次无法执行的 {tool} 调用")
REPEATED = Text(en="Asked for the same again: {tool}", zh="重复了同样的查询：{tool}")
QUESTION = Text(en="the question", zh="问题")

NOTHING_CHANGED = Text(en="Nothing was changed.", zh="没有任何改动。")
CLEARS = Text(en="With {changes} this finding clears.", zh="按 {changes} 修改后，该检查结果消除。")
APPEARS = Text(en="With {changes} this finding appears.", zh="按 {changes} 修改后，会新出现该检查结果。")
STAYS = Text(en="With {changes} this finding stays.", zh="按 {changes} 修改后，该检查结果仍然存在。")
LOGGED = Text(
    en="With {changes} only a new run can tell: this finding rests on the log.",
    zh="按 {changes} 修改后，需要重新运行才能判断：该检查结果依据的是日志。",
)

OPTION = Text(en="{framework} {version} has the option {option}.", zh="{framework} {version} 有参数 {option}。")
NO_OPTION = Text(
    en="The catalogue of {framework} {version} has no option {option}.",
    zh="{framework} {version} 的目录中没有参数 {option}。",
)
TYPE = Text(en="Its type is {type}.", zh="类型为 {type}。")
DEFAULT = Text(en="Its default is {default}.", zh="默认值为 {default}。")
NEEDED = Text(en="It has no default and must be given.", zh="没有默认值，必须给出。")
COMPUTED = Text(en="Its default is computed when the program starts.", zh="默认值在程序启动时计算。")
CHOICES = Text(en="It takes one of {choices}.", zh="可取值：{choices}。")
SINCE = Text(en="It is there since {first}.", zh="自 {first} 起存在。")
UNTIL = Text(en="The last release with it is {last}.", zh="最后包含它的版本是 {last}。")
OWNERS = Text(en="It belongs to {owners}.", zh="属于 {owners}。")
RENAMED = Text(
    en="{old} became {new} between {last_old} and {first_new}.",
    zh="{old} 在 {last_old} 与 {first_new} 之间改名为 {new}。",
)
SUGGESTION = {
    "renamed": Text(en="It was renamed: {key}.", zh="已改名为 {key}。"),
    "removed": Text(en="It was removed; the last release with it is {last}.", zh="已移除；最后包含它的版本是 {last}。"),
    "later": Text(en="It comes only with {first}.", zh="从 {first} 起才有。"),
    "framework": Text(en="It is an option of {framework}.", zh="它是 {framework} 的参数。"),
    "spelling": Text(en="The nearest name is {key}.", zh="最接近的名称是 {key}。"),
}
