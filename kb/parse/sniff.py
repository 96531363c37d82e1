"""What a line, a fence's label, a file name or a whole text is likely to be. Pure pattern work for `kb.parse.segment`."""

from __future__ import annotations

import re

from kb.parse.source import Piece

_INFO = {
    "bash": "command", "sh": "command", "shell": "command", "console": "command", "zsh": "command",
    "terminal": "command",
    "shell-session": "command", "shellscript": "command", "cmd": "command", "powershell": "command", "yaml": "yaml",
    "yml": "yaml", "json": "json", "jsonc": "json", "json5": "json", "jsonl": "metrics", "python": "python",
    "py": "python",
    "python3": "python", "toml": "toml", "ini": "ini", "cfg": "ini", "conf": "ini", "csv": "metrics", "tsv": "metrics",
    "log": "log", "text": "", "txt": "", "plaintext": "", "plain": "", "pytb": "log", "traceback": "log",
    "output": "log",
    "md": "markdown", "markdown": "markdown", "diff": "", "dockerfile": "", "none": "", "pip": "", "logs": "log",
    "stdout": "log",
}  # fmt: skip
_ENDINGS = {
    ".sh": "command", ".bash": "command", ".slurm": "command", ".sbatch": "command", ".zsh": "command", ".yaml": "yaml",
    ".yml": "yaml", ".json": "json", ".py": "python", ".toml": "toml", ".ini": "ini", ".cfg": "ini", ".conf": "ini",
    ".csv": "metrics", ".tsv": "metrics", ".jsonl": "metrics", ".log": "log", ".out": "log", ".err": "log",
    ".md": "markdown",
}  # fmt: skip
_VERB = r"(?:sft|pt|rlhf|infer|deploy|rollout|export|eval|dpo|merge-lora|sample|app|web-ui|train|preprocess|inference|evaluate|fetch|kto|grpo|rloo|reward|orpo|cpo|ppo|env|chat|vllm-serve|serve|api|run)"
PROMPT = re.compile(
    r"[ \t]*(?:(?:\([\w.\- /]+\)[ \t]*)?(?:\[?[\w.\-]+@[\w.\-]+[^\n$#]{0,80}[$#]|\$|>>>|>|%|!"
    r"|\+{1,3})[ \t]*(?=[A-Za-z_./]))+"
)
_SECOND_PROMPT = re.compile(r"[ \t]*>[ \t]*(?=\S)")
_FIRST = (
    r"(?:[\w./~-]*/)?(?:"
    r"deepspeed(?=[ \t]+(?:-|\S+\.py|\\|\$))|torchrun(?=[ \t]+(?:-|\S+\.py|\\|\$))|accelerate[ \t]+launch\b"
    r"|python[\d.]*(?=[ \t]+(?:-[mucWX]|\S+\.py\b|\\))|ray[ \t]+job[ \t]+submit\b|srun(?=[ \t]+(?:-|\S+[ \t]|\\))"
    rf"|(?:swift|megatron|trl|axolotl|llamafactory-cli|lmf|tune|xtuner|vllm)[ \t]+{_VERB}(?=[ \t]*(?:$|\\|-"
    rf"|[\w./-]+\.(?:ya?ml|json)\b|\S+[ \t]+-))"
    r"|nohup(?=[ \t]+\S)|openrlhf\.[\w.]+(?=[ \t]+(?:-|\\))|\./\S+\.(?:sh|py)(?=[ \t]+-)|bash[ \t]+-l?c\b"
    r"|(?:docker|podman)[ \t]+run\b"
    r"|[\w./-]+\.py(?=[ \t]+(?:--|\\))|(?:sudo|timeout|numactl|uv[ \t]+run|conda[ \t]+run"
    r"|mpirun)(?=[ \t]+\S+.*[ \t]--?\w))"
)
_ENV = r"(?:(?:export[ \t]+|env[ \t]+|set[ \t]+)?[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'])*[ \t]+)*"
_COMMAND = re.compile(rf"[ \t]*{_ENV}{_FIRST}", re.MULTILINE)
_FLAGS = re.compile(r"[ \t]*[-‐–—−－]{1,2}[A-Za-z][\w.\-]*(?:[ \t=]|\\?$)")
_DOTTED = re.compile(r"[ \t]*(?:\+{1,2})?[a-z_]\w*(?:\.\w+)+=\S")
_SHELL = re.compile(
    r"[ \t]*(?:#!.*sh\b|#SBATCH\b|set[ \t]+[-+][a-z]|export[ \t]+\w+|[A-Z][A-Z0-9_]*=(?!=)"
    r"|[a-z_]\w*=(?:[\"'$(\[{/]|[\w.]+[ \t]*$)|[a-z_]\w*\+?=\("
    r"|read[ \t]+-|if[ \t]+\[|then\b|else[ \t]*$|elif[ \t]+\[|fi\b|for[ \t]+\w+[ \t]+in\b|do\b|done\b"
    r"|cat[ \t]*(?:>|<<)|cd[ \t]+\S|unset[ \t]"
    r"|source[ \t]+\S|conda[ \t]+activate|echo[ \t]|mkdir[ \t]|sleep[ \t]+\d|wait\b|ulimit\b|module[ \t]+load"
    r"|pip3?[ \t]+install|case[ \t]+\S+[ \t]+in\b|esac\b|&&|\|\|?[ \t])"
)
_HERE = re.compile(r"<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1")
_KEY = re.compile(r"([ \t]*)(?:- )?([A-Za-z_][\w.\-/]*|\"[\w.\-/]+\"):(?:[ \t]+(\S.*)|[ \t]*)$")
_ITEM = re.compile(r"[ \t]*-[ \t]+\S")
_PYTHON = re.compile(
    r"(?:import[ \t]+\w+(?:\.\w+)*(?:[ \t]+as[ \t]|[ \t]*[,;#]|[ \t]*$)|from[ \t]+[\w.]+[ \t]+import\b"
    r"|def[ \t]+\w+\(|class[ \t]+\w+[(:]|@\w+|if[ \t]+__name__|os\.environ\b"
    r"|(?:\w[\w.]*[ \t]*=[ \t]*)(?:\w+\.)*\w*(?:Config|Arguments|Args|Trainer|Params|dict)\("
    r"|\w[\w.]*[ \t]*=[ \t]*\w+(?:\.\w+)*\.from_pretrained\(|trainer\.\w+\()"
)
_PYTHON_MORE = re.compile(
    r"(?:import|from|def|class|if|elif|else|for|while|with|try|except|finally|return|raise|assert|pass|print\(|@"
    r"|\)|\]|\}|#|[A-Za-z_][\w.]*(?:\[[^\]]*\])?[ \t]*(?:[-+*/]?=(?!=)|\())"
)
_CALL = re.compile(
    r"\b(?:args:[ \t]*)?(?:Namespace|\w*(?:Config|Arguments|TrainingArguments))\((?=\s*(?:$|\w+[ \t]*=))"
)
_SECTION = re.compile(r"[ \t]*\[{1,2}[A-Za-z_][\w. \-]*\]{1,2}[ \t]*(?:#.*)?$")
_PAIR = re.compile(r"[ \t]*[A-Za-z_][\w.\-]*[ \t]*=[ \t]*\S")
_VERSIONS = re.compile(
    r"[ \t]*(?:Package[ \t]+Version\b|[A-Za-z][\w.\-]*(?:\[[\w,]+\])?[ ]?(?:==|~=)[ ]?\d"
    r"|[-*][ \t]+`?[\w. \-()]+`?[ \t]+version|#[ \t]*packages in environment|[-]{4,}[ \t]+[-]{4,})"
)
_VERSION_LINE = re.compile(
    r"[ \t]*(?:[-*][ \t]+)?`?[A-Za-z][\w.\-]*`?(?:[ \t]+version)?[ \t]*(?:[:=@]|==|[ \t])[ \t]*v?\d[\w.+\-]*"
    r"|[ \t]*-[- \t]*$"
)
LOG = re.compile(
    r"Traceback \(most recent call last\)|\{'[\w/ .\-]+': ?|[ \t]*\d+%\||\[?\d{4}[-/]\d\d[-/]\d\d[ T]"
    r"|\[\[?rank ?\d|\[(?:INFO|WARNING|ERROR|DEBUG)"
    r"|(?:\w+\.)*\w*(?:Error|Exception|Interrupt): |\b\d+(?:\.\d+)?(?:it/s|s/it)|(?:INFO|WARNING|ERROR|DEBUG"
    r"|CRITICAL)[: -]|\(?\w+ pid=\d+"
    r"|(?i:\b(?:step|iter(?:ation)?|epoch|global_step)\b[ \t]*[:=#]?[ \t]*\d+.*\b(?:loss|reward|lr|kl"
    r"|acc)\w*[ \t]*[:=])|step:\d+ - |[ \t]*iteration[ \t]+\d+/"
)
_JSON_OPEN = re.compile(r"[ \t]*(?:\{[ \t]*$|\[[ \t]*$|\{[ \t]*\"|\[[ \t]*\{)")
_JSON_KEY = re.compile(r"[ \t]*(?:\"[^\"\n]+\"[ \t]*:|\{|//|\})")
_TABLE = re.compile(r"(?i)[ \t]*(?:[\w/ .\-]+[,\t]){2,}[\w/ .\-]+[ \t]*$")
_METRIC = re.compile(r"(?i)\b(?:loss|step|epoch|reward|kl)\b")
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*")
_WORDS = re.compile(r"[A-Za-z]{2,}(?:[ ,.!?]+[A-Za-z']{2,}){5,}|[\u4e00-\u9fff].*[，。？！]")
_REACH = 2000


def is_info(text: str) -> bool:
    """Whether a fence's first line is a label (a language, maybe a file name) rather than text."""
    words = text.split()
    return (
        not words
        or words[0].lower().strip("{}.") in _INFO
        or (len(words) <= 2 and "=" not in text and "--" not in text)
    )


def by_info(text: str) -> str:
    """The kind that a fence's label names, or ``""``."""
    words = text.replace("{", " ").replace("}", " ").split()
    return _INFO.get(words[0].lower().strip("."), "") if words else ""


def by_name(name: str, text: str) -> str:
    """The kind of a file, by its name where that is plain, else by its content; ``""`` reads it like a question."""
    base = name.rpartition("/")[2].lower()
    if base.startswith("requirements") or base in ("pip_list.txt", "pip-list.txt", "freeze.txt", "pip_freeze.txt"):
        return "versions"
    if base.startswith("dockerfile"):
        return "log"
    kind = _ENDINGS.get(base[base.rfind(".") :] if "." in base else "", "")
    if kind == "json" and _jsonl(text):
        return "metrics"
    if kind in ("yaml", "json", "toml", "ini") and is_command(text[:4000]) and not _KEY.search(text):
        return "command"
    return kind or (whole(text) if base.endswith(".txt") or "." not in base else "")


def _jsonl(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    return first.startswith(('{"', "{}")) and first.rstrip().endswith("}") and rest.lstrip().startswith("{")


def whole(text: str) -> str:
    """The kind of an unlabelled text if all of it is one thing, else ``""``."""
    head = text[:20_000]
    lines = [line for line in head.split("\n") if line.strip()]
    if not lines:
        return ""
    if _jsonl(text):
        return "metrics"
    if lines[0].lstrip()[:1] in "{[" and '"' in head and len(lines) > 1 and _JSON_OPEN.match(lines[0]):
        return "json" if "{'" not in lines[0] and text.rstrip()[-1:] in "}]" else ""
    if lines[0].startswith("#!") and "sh" in lines[0]:
        return "command"
    return ""


def is_command(text: str) -> bool:
    """Whether the first line that says anything starts a program of interest."""
    line = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    prompt = PROMPT.match(line)
    return _starts(line[prompt.end() :] if prompt else line)


def has_command(text: str) -> bool:
    """Whether any line of a script starts a program of interest, or is flags only."""
    return any(_starts(PROMPT.sub("", line, count=1)) or _FLAGS.match(line) for line in text.split("\n"))


def _starts(line: str) -> bool:
    return _COMMAND.match(line) is not None or (
        line.rstrip().endswith("\\") and (" --" in line or _ENVIRONMENT.match(line) is not None)
    )


_ENVIRONMENT = re.compile(r"[ \t]*(?:[A-Za-z_]\w*=\S*[ \t]+)*[A-Za-z_]\w*=\S*[ \t]*\\")


def start(lines: list[str], at: int) -> tuple[str, int, int] | None:
    """What begins at line ``at``: (kind, column at which it starts, line after its end), or None for plain text."""
    line = lines[at]
    for find in (_command, _json, _log, _versions, _python, _section, _yaml, _table):
        found = find(lines, at, line)
        if found is not None:
            return found
    return None


def _command(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    prompt = PROMPT.match(line)
    bare = line[prompt.end() :] if prompt else line
    if not (_starts(bare) or _SHELL.match(bare) or _FLAGS.match(bare) or _DOTTED.match(bare)):
        return None
    if _FLAGS.match(bare) and _WORDS.search(bare):
        return None
    end = _command_end(lines, at)
    text = "\n".join(lines[at:end])
    if has_command(text) or (_DOTTED.match(bare) and end - at > 1):
        return "command", 0, end
    return ("command" if re.search(r"^\s*(?:export[ \t]+\w+=|#SBATCH)", text, re.MULTILINE) else "prose"), 0, end


def _command_end(lines: list[str], at: int) -> int:
    """Line after the last one of a script: continuations, here-documents,
    arrays and quotes are followed to their end."""
    end = number = at
    while number < len(lines):
        line = lines[number]
        prompt = PROMPT.match(line)
        bare = line[prompt.end() :] if prompt else line
        stripped = bare.strip()
        if stripped and not stripped.startswith("#") and number > at:
            shellish = _starts(bare) or _SHELL.match(bare) or _FLAGS.match(bare) or _DOTTED.match(bare)
            if not (shellish or lines[number - 1].rstrip().endswith("\\") or stripped in ("}", ")", "EOF")):
                return end
        elif (
            stripped.startswith("#")
            and _WORDS.search(stripped)
            and number == end + 1
            and end == number
            and not lines[end - 1].strip()
        ):
            return end
        if not stripped and number - end > 3:
            return end
        number = _stretch(lines, number, bare)
        if stripped and not (stripped.startswith("#") and not stripped.startswith(("#!", "#SBATCH"))):
            end = number
    return min(end, len(lines))


def _stretch(lines: list[str], number: int, bare: str) -> int:
    """Line after what line ``number`` opens: a here-document, an array or a quoted text over several lines."""
    here = _HERE.search(bare)
    if here:
        for following in range(number + 1, len(lines)):
            if lines[following].strip() == here[2]:
                return following + 1
        return len(lines)
    closer = ")" if re.search(r"\w=\([^)]*$", bare) else ""
    for quote in "'\"":
        rest = re.sub(r"\\.", "", bare)
        if not closer and rest.count(quote) % 2 and (rest.count("'") + rest.count('"')) < 40:
            closer = quote
    if not closer or bare.lstrip().startswith("#"):
        return number + 1
    for following in range(number + 1, min(number + 200, len(lines))):
        if closer in lines[following]:
            return following + 1
    return number + 1


def _json(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    offset = 0
    if not _JSON_OPEN.match(line):
        if (
            not line.rstrip().endswith("{")
            or at + 1 >= len(lines)
            or not _JSON_KEY.match(lines[at + 1])
            or '"' not in lines[at + 1]
        ):
            return None
        offset = line.rfind("{")
    depth = 0
    for number in range(at, min(at + _REACH * 5, len(lines))):
        stripped = _STRING.sub("", lines[number][offset:] if number == at else lines[number])
        depth += stripped.count("{") + stripped.count("[") - stripped.count("}") - stripped.count("]")
        if depth <= 0:
            text = lines[at] if number == at else ""
            if number == at and ('":' not in text.replace(" ", "") or LOG.match(text)):
                return None
            if number > at and not any('":' in item or '" :' in item for item in lines[at : number + 1]):
                return None
            if number == at and _METRIC.search(text) and '"zero' not in text:
                return "metrics", offset, number + 1
            return "json", offset, number + 1
        if number > at and not lines[number].strip() and number + 1 < len(lines) and _WORDS.search(lines[number + 1]):
            return ("json", offset, number) if number > at + 1 else None
    return ("json", offset, len(lines)) if any('":' in item for item in lines[at : at + 50]) else None


def _log(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if not LOG.search(line[:2000]) or (_WORDS.search(line[:300]) and not LOG.match(line)):
        return None
    if "Arguments(" in line or "Namespace(" in line:
        return _calls(lines, at, line)
    number = at + 1
    trace = "Traceback" in line
    while number < len(lines) and lines[number].strip():
        item = lines[number]
        known = LOG.search(item[:2000]) is not None
        trace = trace or "Traceback" in item
        if (
            not known
            and not (trace or item[:1] in " \t")
            and (_starts(item) or _KEY.match(item) or _WORDS.search(item))
        ):
            break
        if item.startswith("```") or ("Arguments(" in item or "Namespace(" in item):
            break
        number += 1
    return "log", 0, number


def _calls(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    found = _CALL.search(line)
    if found is None:
        return None
    end = _closing(lines, at, found.start())
    inline = end == at + 1 and bool(line[: found.start()].strip()) and "Namespace" not in line
    return ("python" if inline else "dump"), (found.start() if inline else 0), end


def _closing(lines: list[str], at: int, offset: int) -> int:
    """Line after the one on which all brackets opened from ``offset`` on are closed again."""
    depth = 0
    for number in range(at, min(at + _REACH, len(lines))):
        stripped = _STRING.sub("", lines[number][offset:] if number == at else lines[number])
        depth += sum(stripped.count(c) for c in "([{") - sum(stripped.count(c) for c in ")]}")
        if depth <= 0:
            return number + 1
    return min(at + _REACH, len(lines))


def _versions(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if not _VERSIONS.match(line) or _WORDS.search(line):
        return None
    number = at + 1
    while number < len(lines) and (_VERSIONS.match(lines[number]) or _VERSION_LINE.match(lines[number])):
        number += 1
    return "versions", 0, number


def _python(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    bare = line[4:] if line.startswith((">>> ", "... ")) else line
    if not _PYTHON.match(bare.lstrip()):
        return (
            _calls(lines, at, line)
            if "(" in line and _CALL.search(line) and "=" in "".join(lines[at : at + 2])
            else None
        )
    number = end = at
    indent = len(bare) - len(bare.lstrip())
    while number < len(lines):
        item = lines[number]
        stripped = item.strip()
        if stripped:
            if (
                number > at
                and not (item[:1] in " \t" and len(item) - len(item.lstrip()) > indent)
                and not _PYTHON_MORE.match(item.lstrip())
            ):
                break
            if LOG.match(item) or _COMMAND.match(item) or _WORDS.match(item):
                break
            number = end = _closing(lines, number, 0)
        elif number - end > 2:
            break
        else:
            number += 1
    return ("python", 0, end) if end > at else None


def _section(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if (
        not _SECTION.match(line)
        or at + 1 >= len(lines)
        or not (_PAIR.match(lines[at + 1]) or lines[at + 1].lstrip()[:1] == "#")
    ):
        return None
    number = at + 1
    while number < len(lines):
        item = lines[number]
        inside = (
            _PAIR.match(item)
            or _SECTION.match(item)
            or not item.strip()
            or item.lstrip()[:1] in "#;]"
            or item[:1] in " \t"
        )
        if not inside:
            break
        number += 1
    body = "\n".join(lines[at:number])
    return ("toml" if re.search(r"=[ \t]*(?:[\"'\[{]|true\b|false\b)", body) else "ini"), 0, number


def _yaml(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    found = _KEY.match(line)
    if found is None or not _config_like(found):
        return None
    base = len(found[1])
    keys, end, number = 0, at, at
    single = False
    while number < len(lines):
        item = lines[number]
        bare = item.strip()
        key = _KEY.match(item)
        deeper = len(item) - len(item.lstrip()) > base
        if not bare or bare.startswith("#") or bare in ("---", "..."):
            if not bare and number - end > 2:
                break
        elif key and (deeper or len(key[1]) == base) and (deeper or _config_like(key)):
            keys += 1
            single = single or "_" in key[2]
            end = number + 1
        elif deeper or (_ITEM.match(item) and number == end and not _WORDS.search(item)):
            end = number + 1
        else:
            break
        number += 1
    return ("yaml", 0, end) if keys > 1 or single else None


def _config_like(key: re.Match[str]) -> bool:
    name, value = key[2], key[3] or ""
    if name.isupper() or name[:1].isupper() or name in ("http", "https"):
        return name == "ENV"
    return not _WORDS.search(value.split(" #")[0]) and len(value) < 2000


def _table(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if not _TABLE.match(line) or not _METRIC.search(line) or at + 1 >= len(lines):
        return None
    width = max(line.count(","), line.count("\t"))
    number = at + 1
    while (
        number < len(lines)
        and max(lines[number].count(","), lines[number].count("\t")) == width
        and any(c.isdigit() for c in lines[number])
    ):
        number += 1
    return ("metrics", 0, number) if number > at + 1 else None


def unprompt(piece: Piece) -> Piece:
    """Without the prompts (``$ ``, ``> ``, ``!``, ``user@host:~# ``) that stand before commands."""
    lines = piece.text.split("\n")
    if not any(PROMPT.match(line) for line in lines):
        return piece
    taken: list[int] = []
    for number, line in enumerate(lines):
        inside = number > 0 and lines[number - 1].rstrip().endswith("\\")
        found = _SECOND_PROMPT.match(line) if inside else PROMPT.match(line)
        taken.append(0 if found is None or line.lstrip().startswith(("%env", "!=")) else found.end())
    return _without(piece, lines, taken)


def unindent(piece: Piece, width: int) -> Piece:
    """Without up to ``width`` leading blanks or quote marks on each line."""
    lines = piece.text.split("\n")
    taken = [min(width, len(line) - len(line.lstrip(" \t>"))) for line in lines]
    return _without(piece, lines, taken) if any(taken) else piece


def _without(piece: Piece, lines: list[str], taken: list[int]) -> Piece:
    before = piece.prefixes or ("",) * len(lines)
    prefixes = tuple(old + line[:count] for old, line, count in zip(before, lines, taken, strict=True))
    return Piece(
        source=piece.source, text="\n".join(line[count:] for line, count in zip(lines, taken, strict=True)),
        line=piece.line, column=piece.column + taken[0], prefixes=prefixes,
    )  # fmt: skip
