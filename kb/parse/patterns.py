"""Patterns that tell a line of one kind from another. Used by `kb.parse.sniff` and `kb.parse.segment`."""

from __future__ import annotations

import re

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.profiles import profiles

_PROFILES = tuple(profiles().values())
_COMMANDS = [re.escape(name) for profile in _PROFILES for name in profile.commands.names]
_VERBS = {
    verb
    for profile in _PROFILES
    for verb in (*profile.commands.trains, *profile.commands.idle, *profile.commands.launches)
}
_MODULES = [module for profile in _PROFILES if profile.bare_module for module in profile.modules]
"""Frameworks whose users leave ``python -m`` out."""
PROMPT = re.compile(
    r"[ \t]*(?:(?:\([\w.\- /]+\)[ \t]*)?(?:\[?[\w.\-]+@[\w.\-]+[^\n$#]{0,80}[$#]|\$|>>>|>|%|!"
    r"|`(?!`)(?=[^`\n]*(?:\n|$))|\+{1,3})[ \t]*(?=[A-Za-z_./]))+"
)
SECOND_PROMPT = re.compile(r"[ \t]*>[ \t]*(?=\S)")
FIRST = (
    r"(?:[\w./~-]*/)?(?:"
    r"deepspeed(?=[ \t]+(?:-|\S+\.py|\\|\$))|torchrun(?=[ \t]+(?:-|\S+\.py|\\|\$))|accelerate[ \t]+launch\b"
    r"|python[\d.]*(?=[ \t]+(?:-[mucWX]|\S+\.py\b|\\))|ray[ \t]+job[ \t]+submit\b|srun(?=[ \t]+(?:-|\S+[ \t]|\\))"
    rf"|(?:{'|'.join(_COMMANDS)})[ \t]+(?:{'|'.join(map(re.escape, sorted(_VERBS)))})(?=[ \t]*(?:$|\\|-"
    rf"|[\w./-]+\.(?:ya?ml|json)\b|\S+[ \t]+-))"
    rf"|nohup(?=[ \t]+\S)|(?:{'|'.join(_MODULES)})\.[\w.]+(?=[ \t]+(?:-|\\))"
    r"|\./\S+\.(?:sh|py)(?=[ \t]+-)|bash[ \t]+-l?c\b"
    r"|(?:docker|podman)[ \t]+run\b"
    r"|[\w./-]+\.py(?=[ \t]+(?:--|\\))|(?:sudo|timeout|numactl|uv[ \t]+run|conda[ \t]+run"
    r"|mpirun)(?=[ \t]+\S+.*[ \t]--?\w))"
)
ENV = r"(?:(?:export[ \t]+|env[ \t]+|set[ \t]+)?[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'])*[ \t]+)*"
COMMAND = re.compile(rf"[ \t]*{ENV}{FIRST}", re.MULTILINE)
SAID = re.compile(r"[ \t]*[^\W\d_][^:：\n`\"'=]{2,80}[:：][ \t]*(?=[\w./~-])")
FLAGS = re.compile(r"[ \t]*[-‐–—−－]{1,2}[A-Za-z][\w.\-]*(?:[ \t=]|\\?$)")
DOTTED = re.compile(
    r"[ \t]*(?:\+{1,2})?(?!(?:self|\w*args|tokenizer|os|torch|cfg|config|model\.config|\w+_config)\.)"
    r"[a-z_]\w*(?:\.\w+)+=\S"
)
"""An override of Hydra on its own line, not an assignment to a Python attribute."""
SHELL = re.compile(
    r"[ \t]*(?:#!.*sh\b|#SBATCH\b|set[ \t]+[-+][a-z]|export[ \t]+\w+|[A-Z][A-Z0-9_]*=(?!=)"
    r"|[a-z_]\w*=(?:[\"'$(\[{/]|[\w.]+[ \t]*$)|[a-z_]\w*\+?=\("
    r"|read[ \t]+-|if[ \t]+\[|then\b|else[ \t]*$|elif[ \t]+\[|fi\b|for[ \t]+\w+[ \t]+in\b|do\b|done\b"
    r"|cat[ \t]*(?:>|<<)|cd[ \t]+\S|unset[ \t]"
    r"|source[ \t]+\S|conda[ \t]+activate|echo[ \t]|mkdir[ \t]|sleep[ \t]+\d|wait\b|ulimit\b|module[ \t]+load"
    r"|pip3?[ \t]+install|case[ \t]+\S+[ \t]+in\b|esac\b|&&|\|\|?[ \t])"
)
HERE = re.compile(r"<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1")
KEY = re.compile(r"([ \t]*)(?:- )?([A-Za-z_][\w.\-/]*|\"[\w.\-/]+\"):(?:[ \t]+(\S.*)|[ \t]*)$")
CONFIG_KEYS = frozenset(load_table("parse/data/words.toml")["options"]["any"])
MEASURED = re.compile(
    r"^[ \t]*(?:train[_/]|eval[_/])?(?:loss|grad_norm)[ \t]*:[ \t]+(?:-?\d[\d.eE+-]*|(?i:nan|-?inf))[ \t]*$",
    re.MULTILINE,
)
"""A line that only a running training prints."""
ITEM = re.compile(r"[ \t]*-[ \t]+\S")
PYTHON = re.compile(
    r"(?:import[ \t]+\w+(?:\.\w+)*(?:[ \t]+as[ \t]|[ \t]*[,;#]|[ \t]*$)|from[ \t]+[\w.]+[ \t]+import\b"
    r"|def[ \t]+\w+\(|class[ \t]+\w+[(:]|@\w+|if[ \t]+__name__|os\.environ\b"
    r"|(?:\w[\w.]*[ \t]*=[ \t]*)(?:\w+\.)*\w*(?:Config|Arguments|Args|Trainer|Params|dict)\("
    r"|\w[\w.]*[ \t]*=[ \t]*\w+(?:\.\w+)*\.from_pretrained\(|trainer\.\w+\("
    r"|[A-Za-z_]\w*(?:,[ \t]*\w+)*[ \t]+=[ \t]+[A-Za-z_][\w.]*\((?:[^\s()].*)?$"
    r"|[A-Za-z_]\w*(?:\.\w+)*\((?:.*[(,][ \t]*)?\w+[ \t]?=[^=]"
    r"|(?:[A-Za-z_]\w*\.)+[a-z_]\w*[ \t]+=[ \t]+(?:[\d\[{(\"'-]|True\b|False\b|None\b|\w+\.\w))"
)
PYTHON_MORE = re.compile(
    r"(?:import|from|def|class|if|elif|else|for|while|with|try|except|finally|return|raise|assert|pass|print\(|@"
    r"|\)|\]|\}|#|[A-Za-z_][\w.]*(?:\[[^\]]*\])?[ \t]*(?:[-+*/]?=(?!=)|\())"
)
CALL = re.compile(r"\b(?:args:[ \t]*)?(?:Namespace|\w*(?:Config|Arguments|TrainingArguments))\((?=\s*(?:$|\w+[ \t]*=))")
SECTION = re.compile(r"[ \t]*\[{1,2}[A-Za-z_][\w. \-]*\]{1,2}[ \t]*(?:#.*)?$")
PAIR = re.compile(r"[ \t]*[A-Za-z_][\w.\-]*[ \t]*=[ \t]*\S")
VERSIONS = re.compile(
    r"[ \t]*(?:Package[ \t]+Version\b|[A-Za-z][\w.\-]*(?:\[[\w,]+\])?[ ]?(?:==|~=)[ ]?\d"
    r"|[-*][ \t]+`?[\w. \-()]+`?[ \t]+version|#[ \t]*packages in environment|[-]{4,}[ \t]+[-]{4,})"
)
VERSION_LINE = re.compile(
    r"[ \t]*(?:[-*][ \t]+)?`?[A-Za-z][\w.\-]*`?(?:[ \t]+version)?[ \t]*(?:[:=@]|==|[ \t])[ \t]*v?\d[\w.+\-]*"
    r"|[ \t]*-[- \t]*$"
)
LOG = re.compile(
    r"Traceback \(most recent call last\)|\[[EWF] [A-Z]\w+\.cpp:\d|\{'[\w/ .\-]+': ?"
    r"|[ \t]*\d+%\||\[?\d{4}[-/]\d\d[-/]\d\d[ T]"
    r"|\[\[?rank ?\d|\[(?:INFO|WARNING|ERROR|DEBUG)"
    r"|\b(?:\w+\.)*\w*(?:Error|Exception|Interrupt): (?![0-9.]+$)|\b\d+(?:\.\d+)?(?:it/s|s/it)"
    r"|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)[: -]|\b\w+ pid=\d+|\(\w+ pid=\d+"
    r"|(?i:\b(?:step|iter(?:ation)?|epoch|global_step)\b[ \t]*[:=#]?[ \t]*\d+.*\b(?:loss|reward|lr|kl"
    r"|acc)\w*[ \t]*[:=])|step:\d+ - |[ \t]*iteration[ \t]+\d+/"
)
JSON_OPEN = re.compile(r"[ \t]*(?:\{[ \t]*$|\[[ \t]*$|\{[ \t]*\"|\[[ \t]*\{)")
JSON_KEY = re.compile(r"[ \t]*(?:\"[^\"\n]+\"[ \t]*:|\{|//|\})")
TABLE = re.compile(r"(?i)[ \t]*(?:[\w/ .\-]+[,\t]){2,}[\w/ .\-]+[ \t]*$")
METRIC = re.compile(r"(?i)\b(?:loss|step|epoch|reward|kl)\b")
STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*")
WORDS = re.compile(r"[A-Za-z]{2,}(?:[ ,.!?]+[A-Za-z']{2,}){5,}|[\u4e00-\u9fff].*[，。？！]")
LABEL = re.compile(r"(?=[\w.\- ]{0,24}[\u4e00-\u9fff])[\w.\-][\w.\- ]{0,40}[:：]")
"""What a user says of the next lines, in Chinese ("运行脚本：", "swift版本：2.6.1"): programs do not log so."""
REACH = 2000
ENVIRONMENT = re.compile(r"[ \t]*(?:[A-Za-z_]\w*=\S*[ \t]+)*[A-Za-z_]\w*=\S*[ \t]*\\")
