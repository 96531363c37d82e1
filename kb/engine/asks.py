"""How to ask for a missing fact, in both languages. Facts are named as in `kb.model.report.Missing`."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.model.report import Missing, Text

_WORDS = {
    "framework": Text(
        en="Which training framework is this (and the command that started it)?",
        zh="用的是哪个训练框架？请贴出启动命令。",
    ),
    "algorithm": Text(
        en="Which training algorithm is this (SFT, DPO, KTO, PPO …)?", zh="训练算法是什么（SFT、DPO、KTO、PPO……）？"
    ),
    "stage": Text(
        en="Is this pre-training, SFT, reward modelling, preference tuning or RL?",
        zh="这是预训练、SFT、奖励模型、偏好对齐还是 RL？",
    ),
    "model": Text(en="Which model is trained?", zh="训练的是哪个模型？"),
    "model_family": Text(en="Which model is trained (name and size)?", zh="训练的是哪个模型（名称和规模）？"),
    "command": Text(en="Paste the launch command.", zh="请贴出启动命令。"),
    "card": Text(en="Which graphics card is used? (`nvidia-smi`)", zh="用的是什么显卡？（`nvidia-smi`）"),
    "log": Text(
        en="Paste the log: the first rows, and those around the first bad step.",
        zh="请贴出日志：开头几行，以及第一次出问题前后的几行。",
    ),
}
_PASTE = Text(en="Paste the launch command or the config that holds it.", zh="请贴出含有它的启动命令或配置。")


def missing(fact: str, rule_title: Text, spellings: Sequence[str] = (), note: Text | None = None) -> Missing:
    """What to ask for ``fact``, and why: the rule needs it. ``spellings``: the framework's own names of a setting.
    ``note``: what is known of a setting that is not written."""
    why = Text(en=f"It decides: {rule_title.en}", zh=f"它决定是否属于：{rule_title.zh}")
    return Missing(fact=fact, why=why, ask=_ask(fact, spellings, note or _PASTE))


def _ask(fact: str, spellings: Sequence[str], note: Text) -> Text:
    kind, _, name = fact.partition(":")
    if kind == "version":
        return Text(
            en=f"Which version of {name} is installed? (`pip show {name}`)",
            zh=f"安装的 {name} 是哪个版本？（`pip show {name}`）",
        )
    if kind in ("setting", "option"):
        shown = "`" + (spellings[0] if spellings else name) + "`"
        return Text(
            en=f"What is {shown} set to? {note.en}",
            zh=f"{shown} 设的是什么？{note.zh}",
        )
    if kind == "stacks":
        ranks = name.replace("+", ", ")
        en, zh = ("all ranks", "所有 rank") if name == "*" else (f"rank {ranks}", f"rank {ranks}")
        return Text(
            en=f"Send the stacks of {en}: `trainmedic doctor --stacks PID`, or `py-spy dump --pid PID` twice.",
            zh=f"请提供 {zh} 的堆栈：`trainmedic doctor --stacks PID`，或 `py-spy dump --pid PID`（两次）。",
        )
    if kind == "metric":
        return Text(en=f"Paste log rows that show `{name}`.", zh=f"请贴出含有 `{name}` 的日志行。")
    return _WORDS.get(kind, Text(en=f"Please give {fact}.", zh=f"请提供 {fact}。"))
