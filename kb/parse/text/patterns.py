"""Patterns that tell a line of one kind from another. Used by `kb.parse.text.stretches` and `kb.parse.text.segment`."""

from __future__ import annotations

import re

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.lazy import regex

_PROFILES = tuple(profiles().values())
_COMMANDS = [re.escape(name) for profile in _PROFILES for name in profile.commands.names]
_VERBS = {
    verb
    for profile in _PROFILES
    for verb in (*profile.commands.trains, *profile.commands.idle, *profile.commands.launches)
}
_MODULES = [module for profile in _PROFILES if profile.bare_module for module in profile.modules]
"""Frameworks whose users leave ``python -m`` out."""
PROMPT = regex(
    r"[ \t]*+(?:(?:\([\w.\- /]++\)[ \t]*+)?(?:\[?[\w.\-]++@[\w.\-]++[^\n$#]{0,80}[$#]|\$|>>>|>|%|!"
    r"|`(?!`)(?=[^`\n]*+(?:\n|$))|\+{1,3})[ \t]*+(?=[A-Za-z_./]))+"
)
SECOND_PROMPT = regex(r"[ \t]*+>[ \t]*+(?=\S)")
FIRST = (
    r"(?:(?:[\w.~-]*+/)*(?:"
    r"deepspeed(?=[ \t]++(?:-|\S+\.py|\\|\$))|torchrun(?=[ \t]++(?:-|\S+\.py|\\|\$))|accelerate[ \t]++launch\b"
    r"|python[\d.]*(?=[ \t]++(?:-[mucWX]|\S+\.py\b|\\))|ray[ \t]++job[ \t]++submit\b"
    r"|srun(?=[ \t]++(?:-|\S+[ \t]|\\))"
    rf"|(?:{'|'.join(_COMMANDS)})[ \t]++(?:{'|'.join(map(re.escape, sorted(_VERBS)))})(?=[ \t]*+(?:$|\\|-"
    rf"|[\w./-]+\.(?:ya?ml|json)\b|\S+[ \t]++-))"
    rf"|nohup(?=[ \t]++\S)|(?:{'|'.join(_MODULES)})\.[\w.]+(?=[ \t]++(?:-|\\))"
    r"|bash[ \t]++-l?c\b|(?:docker|podman)[ \t]++run\b"
    r"|(?:sudo|timeout|numactl|uv[ \t]++run|conda[ \t]++run|mpirun)(?=[ \t]++\S.*[ \t]--?\w))"
    r"|\./\S+\.(?:sh|py)(?=[ \t]++-)|[\w./~-]+\.py(?=[ \t]++(?:--|\\)))"
)
ENV = (
    r"(?:(?:export[ \t]++|env[ \t]++|set[ \t]++)?[A-Za-z_]\w*+="
    r"(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s\"']++)*[ \t]++)*"
)
COMMAND = regex(rf"[ \t]*+{ENV}{FIRST}", re.MULTILINE)
SAID = regex(r"[ \t]*[^\W\d_][^:：\n`\"'=]{2,80}[:：][ \t]*(?=[\w./~-])")
FLAGS = regex(r"[ \t]*[-‐–—−－]{1,2}[A-Za-z][\w.\-]*(?:[ \t=]|\\?$)")
DOTTED = regex(
    r"[ \t]*+(?:\+{1,2})?(?!(?:self|\w*args|tokenizer|os|torch|cfg|config|model\.config|\w+_config)\.)"
    r"[a-z_]\w*+(?:\.\w++)+=\S"
)
"""An override of Hydra on its own line, not an assignment to a Python attribute."""
SHELL = regex(
    r"[ \t]*(?:#!.*sh\b|#SBATCH\b|set[ \t]+[-+][a-z]|export[ \t]+\w+|[A-Z][A-Z0-9_]*=(?!=)"
    r"|[a-z_]\w*=(?:[\"'$(\[{/]|[\w.]+[ \t]*$)|[a-z_]\w*\+?=\("
    r"|read[ \t]+-|if[ \t]+\[|then\b|else[ \t]*$|elif[ \t]+\[|fi\b|for[ \t]+\w+[ \t]+in\b|do\b|done\b"
    r"|cat[ \t]*(?:>|<<)|cd[ \t]+\S|unset[ \t]"
    r"|source[ \t]+\S|conda[ \t]+activate|echo[ \t]|mkdir[ \t]|sleep[ \t]+\d|wait\b|ulimit\b|module[ \t]+load"
    r"|pip3?[ \t]+install|case[ \t]+\S+[ \t]+in\b|esac\b|&&|\|\|?[ \t])"
)
HERE = regex(r"<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1")
KEY = regex(r"([ \t]*)(?:- )?([A-Za-z_][\w.\-/]*|\"[\w.\-/]+\"):(?:[ \t]+(\S.*)|[ \t]*)$")
CONFIG_KEYS = frozenset(load_table("parse/data/words.toml")["options"]["any"])
MEASURED = regex(
    r"^[ \t]*(?:train[_/]|eval[_/])?(?:loss|grad_norm)[ \t]*:[ \t]+(?:-?\d[\d.eE+-]*|(?i:nan|-?inf))[ \t]*$",
    re.MULTILINE,
)
"""A line that only a running training prints."""
ITEM = regex(r"[ \t]*-[ \t]+\S")
PYTHON = regex(
    r"(?:import[ \t]+\w+(?:\.\w+)*(?:[ \t]+as[ \t]|[ \t]*[,;#]|[ \t]*$)|from[ \t]+[\w.]+[ \t]+import\b"
    r"|def[ \t]+\w+\(|class[ \t]+\w+[(:]|@\w+|if[ \t]+__name__|os\.environ\b"
    r"|(?:\w[\w.]*[ \t]*=[ \t]*)(?:\w+\.)*\w*(?:Config|Arguments|Args|Trainer|Params|dict)\("
    r"|\w[\w.]*[ \t]*=[ \t]*\w+(?:\.\w+)*\.from_pretrained\(|trainer\.\w+\("
    r"|[A-Za-z_]\w*(?:,[ \t]*\w+)*[ \t]+=[ \t]+[A-Za-z_][\w.]*\((?:[^\s()].*)?$"
    r"|[A-Za-z_]\w*(?:\.\w+)*\((?:.*[(,][ \t]*)?\w+[ \t]?=[^=]"
    r"|(?:[A-Za-z_]\w*\.)+[a-z_]\w*[ \t]+=[ \t]+(?:[\d\[{(\"'-]|True\b|False\b|None\b|\w+\.\w))"
)
PYTHON_MORE = regex(
    r"(?:import|from|def|class|if|elif|else|for|while|with|try|except|finally|return|raise|assert|pass|print\(|@"
    r"|\)|\]|\}|#|[A-Za-z_][\w.]*(?:\[[^\]]*\])?[ \t]*(?:[-+*/]?=(?!=)|\())"
)
CALL = regex(r"\b(?:args:[ \t]*)?(?:Namespace|\w*(?:Config|Arguments|TrainingArguments))\((?=\s*(?:$|\w+[ \t]*=))")
SECTION = regex(r"[ \t]*\[{1,2}[A-Za-z_][\w. \-]*\]{1,2}[ \t]*(?:#.*)?$")
PAIR = regex(r"[ \t]*[A-Za-z_][\w.\-]*[ \t]*=[ \t]*\S")
VERSIONS = regex(
    r"[ \t]*(?:Package[ \t]+Version\b|[A-Za-z][\w.\-]*(?:\[[\w,]+\])?[ ]?(?:==|~=)[ ]?\d"
    r"|[-*][ \t]++`?+(?:[\w.\-()]++`?+[ \t]++)+?version|#[ \t]*+packages in environment|-{4,}+[ \t]++-{4,}+)"
)
VERSION_LINE = regex(
    r"[ \t]*+(?:[-*][ \t]++)?`?+[A-Za-z][\w.\-]*+`?+(?:[ \t]++version)?(?:[ \t]*+(?:==|[:=@])[ \t]*+|[ \t]++)v?\d"
    r"|[ \t]*+-[- \t]*+$"
)
_LOG = regex(
    r"Traceback \(most recent call last\)|\[[EWF] [A-Z]\w+\.cpp:\d|\{'[\w/ .\-]++': ?"
    r"|(?<![ \t\d])[ \t]*+\d++%\||\[?\d{4}[-/]\d\d[-/]\d\d[ T]"
    r"|\[\[?rank ?\d|\[(?:INFO|WARNING|ERROR|DEBUG)"
    r"|(?<!\w)(?<!\w\.)(?:\w++\.)*\w*(?:Error|Exception|Interrupt): (?![0-9.]++$)|\b\d++(?:\.\d++)?(?:it/s|s/it)"
    r"|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)[: -]|\b\w++ pid=\d|\(\w++ pid=\d"
    r"|step:\d++ - |(?<![ \t])[ \t]*+iteration[ \t]++\d++/"
)
_STEP = regex(r"(?i:\b(?:step|iter(?:ation)?|epoch|global_step)\b[ \t]*+[:=#]?[ \t]*+\d)")
_LOGGED_VALUE = regex(r"(?i:\b(?:loss|reward|lr|kl|acc)\w*+[ \t]*+[:=])")
_LONGEST_LOG_PREFIX = 2000


def is_logged(line: str) -> bool:
    """Whether the head of a line holds what programs print into logs."""
    head = line[:_LONGEST_LOG_PREFIX]
    if _LOG.search(head):
        return True
    step = _STEP.search(head)
    return step is not None and _LOGGED_VALUE.search(head, step.end()) is not None


def begins_log(line: str) -> bool:
    """Whether a line begins with what programs print into logs."""
    head = line[:_LONGEST_LOG_PREFIX]
    if _LOG.match(head):
        return True
    step = _STEP.match(head)
    return step is not None and _LOGGED_VALUE.search(head, step.end()) is not None


JSON_OPEN = regex(r"[ \t]*(?:\{[ \t]*$|\[[ \t]*$|\{[ \t]*\"|\[[ \t]*\{)")
JSON_KEY = regex(r"[ \t]*(?:\"[^\"\n]+\"[ \t]*:|\{|//|\})")
TABLE = regex(r"(?i)(?:[\w/ .\-]++[,\t]){2,}[\w/ .\-]++[ \t]*+$")
METRIC = regex(r"(?i)\b(?:loss|step|epoch|reward|kl)\b")
_STRINGS = {quote: regex(rf"{quote}[^{quote}\\\n]*+(?:\\.[^{quote}\\\n]*+)*{quote}") for quote in ("'", '"')}
_OPENERS = {quotes: regex(f"[{quotes}#]") for quotes in ("'\"", "'", '"', "")}
_ENGLISH = regex(r"(?<![A-Za-z])[A-Za-z]{2,}+(?:[ ,.!?]++[A-Za-z'][A-Za-z']++){5}")
_CHINESE = regex(r"[\u4e00-\u9fff]")
_CHINESE_MARK = regex(r"[，。？！]")


def bare(line: str) -> str:
    """A line of code without its strings and its comment. A quotation mark that is not closed stays."""
    parts: list[str] = []
    at = kept = 0
    quotes = "'\""
    while opener := _OPENERS[quotes].search(line, at):
        at = opener.start()
        if opener[0] == "#":
            return "".join((*parts, line[kept:at]))
        string = _STRINGS[opener[0]].match(line, at)
        if string is None:
            quotes = quotes.replace(opener[0], "")  # nor is any later mark of this kind closed
            at += 1
        else:
            parts.append(line[kept:at])
            at = kept = string.end()
    return "".join((*parts, line[kept:])) if parts else line


def begins_sentence(text: str) -> bool:
    """Whether a text begins with words of a sentence, six of English or a Chinese clause with its mark."""
    if _ENGLISH.match(text):
        return True
    return _CHINESE.match(text) is not None and _CHINESE_MARK.search(text.split("\n", 1)[0]) is not None


def holds_sentence(text: str) -> bool:
    """Whether a line holds words of a sentence anywhere."""
    if _ENGLISH.search(text):
        return True
    start = _CHINESE.search(text)
    return start is not None and _CHINESE_MARK.search(text, start.end()) is not None


LABEL = regex(r"(?=[\w.\- ]{0,24}[\u4e00-\u9fff])[\w.\-][\w.\- ]{0,40}[:：]")
"""A user's heading for the next lines, in Chinese ("运行脚本：", "swift版本：2.6.1"): programs do not log so."""
REACH = 2000
ENVIRONMENT = regex(r"[ \t]*+(?:[A-Za-z_]\w*+=\S*[ \t]++)*[A-Za-z_]\w*+=\S*[ \t]*+\\")
