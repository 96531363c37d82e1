"""A shell script or pasted command → its commands: launcher, program, options with their positions. Never raises."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Origin, Recognised, Unresolved, Value
from trainmedic.kb.parse.readers import hydra, launch
from trainmedic.kb.parse.readers.hydra import typed
from trainmedic.kb.parse.readers.shell_expand import Arg, Expander
from trainmedic.kb.parse.readers.shell_lex import Flaw, Lexer, Statement, Word
from trainmedic.kb.parse.source import Piece

DASHES = "-‐‑–—―−－﹣"
_FLAG = re.compile(
    rf"(?:--|[{DASHES[1:]}]|[{DASHES}]{{2}}|-(?=[A-Za-z]))[{DASHES}]?(?P<key>[A-Za-z_][\w.\-/@\[\]]*)(?P<value>=.*)?",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_DOTTED = re.compile(r"(?:\+{1,2}|~)?[A-Za-z_]\w*(?:\.[\w\-]+)+=")
_SBATCH = re.compile(r"^#SBATCH[ \t]+(?P<all>--?(?P<key>[\w-]+)(?:[= \t][ \t]*(?P<value>[^\s#]+))?)", re.MULTILINE)
_ELISION = re.compile(r"\.{3,}|…+|\[\.\.\.\]|<\.\.\.>")
_KEYWORDS = {"then", "else", "do", "{", "!", "if", "elif", "while", "until", "time", "(", "nohup", "exec", "eval", "+"}
_OPENERS = {"if": 1, "case": 1, "fi": -1, "esac": -1}
_EXPORTS = {"export", "declare", "local", "readonly", "typeset"}
_CONFIG_FILE = re.compile(r"[^\s=]+\.(?:ya?ml|json|toml)")
_MESSAGES = {
    "unclosed_quote": "a quotation mark is opened and never closed",
    "unclosed_heredoc": "a here-document is opened and never closed",
    "unclosed_bracket": "an array is opened and never closed",
    "no_blank_before_backslash": "no blank before the backslash that continues the line; read as if there were one",
    "typographic": "curly quotation marks or long dashes stand where the shell needs plain ones; read as plain ones",
}
_BREAKS = {
    "blank_after_backslash": "a blank after the backslash ends the command here",
    "comment_in_command": "a comment between continued lines ends the command here",
    "missing_backslash": "the line above has no backslash, so the command ends before this flag",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command that starts a program of interest.

    ``options``: environment first (scope ``env``), then the launcher's (``launcher``), then the program's own.
    ``positional``: what the program was given without a flag; ``config_files`` those of them, and of the flags' values,
    that name a configuration file. ``lines`` are its first and last line.
    """

    span: Span
    lines: tuple[int, int]
    entry: Recognised | None
    launcher: str | None
    options: tuple[Option, ...]
    positional: tuple[str, ...] = ()
    config_files: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a piece of shell text holds: commands, files written by here-document (name, content), exported options."""

    commands: tuple[Command, ...] = ()
    files: tuple[tuple[str, Piece], ...] = ()
    exports: tuple[Option, ...] = ()
    problems: tuple[Problem, ...] = ()


def read(piece: Piece) -> Script:
    """Read a script, a pasted command, or several of them."""
    return _Reader(piece).run()


class _Reader:
    def __init__(self, piece: Piece, *, depth: int = 0) -> None:
        self.piece = piece
        self.depth = depth
        self.expander = Expander(piece.text)
        self.exports: dict[str, Option] = {}
        self.commands: list[Command] = []
        self.files: list[tuple[str, Piece]] = []
        self.problems: list[Problem] = []
        self.nesting = 0
        self.batch = tuple(self._sbatch())

    def run(self) -> Script:
        lexer = Lexer(self.piece.text)
        statements = lexer.run()
        flaws = [flaw for flaw in lexer.flaws if flaw.code in _MESSAGES]
        index = 0
        while index < len(statements):
            index = self._statement(statements, index, flaws)
        self._report(flaws)
        return Script(
            commands=tuple(self.commands), files=tuple(self.files),
            exports=tuple(self.exports.values()), problems=tuple(self.problems),
        )  # fmt: skip

    def _statement(self, statements: list[Statement], index: int, flaws: list[Flaw]) -> int:
        statement = statements[index]
        words = self._strip(statement.words)
        prefix = self._prefix(words)
        following = index + 1
        if not words or not prefix < len(words):
            for word in words:
                self._assign(word, exported=False)
            self._unexported(words, statement)
            return following
        name = self.piece.text[words[prefix].start : words[prefix].end]
        if name in _EXPORTS:
            for word in words[prefix + 1 :]:
                self._assign(word, exported=True)
            return following
        if name in ("read", "mapfile") and statement.here:
            here = statement.here[0]
            self.expander.assign_text(self.piece.text[words[-1].start : words[-1].end], here.start, here.end)
            return following
        if statement.here and statement.target is not None:
            here = statement.here[0]
            target, _ = self.expander.join(statement.target.parts)
            self.files.append((target, self.piece.cut(here.start, here.end)))
            return following
        if name == "for" and len(words) > 1:
            self.expander.forget(self.piece.text[words[1].start : words[1].end])
            return following
        words = list(words)
        following, partial = self._orphans(statements, index, words)
        self._command(words, prefix, statement, partial or self._flawed(flaws, statement))
        return following

    def _strip(self, words: list[Word]) -> list[Word]:
        at = 0
        while at < len(words):
            text = self.piece.text[words[at].start : words[at].end]
            self.nesting = max(0, self.nesting + _OPENERS.get(text, 0))
            if text not in _KEYWORDS:
                break
            at += 1
        return words[at:]

    def _prefix(self, words: list[Word]) -> int:
        """How many assignments stand before the command (``env`` and ``%env`` count as one of them)."""
        at = 0
        while at < len(words):
            text = self.piece.text[words[at].start : words[at].end]
            if (text in ("env", "%env") and at == 0) or (
                words[at].parts and _ASSIGNMENT.match(text) and not words[at].parts[0].quoted
            ):
                at += 1
            else:
                break
        return at

    def _assign(self, word: Word, *, exported: bool) -> None:
        text = self.piece.text[word.start : word.end]
        found = _ASSIGNMENT.match(text)
        if found:
            self.expander.assign(found[1], word, append=bool(found[2]), conditional=self.nesting > 0)
        if exported and re.match(r"[A-Za-z_]\w*\Z|[A-Za-z_]\w*\+?=", text):
            self.exports[found[1] if found else text] = self._env(word)

    def _unexported(self, words: list[Word], statement: Statement) -> None:
        """Assignments meant for the program below, which a comment cuts off from it."""
        flaw = statement.broken
        if flaw is None or flaw.code != "comment_in_command" or not statement.continued:
            return
        names = ", ".join(self.piece.text[word.start : word.end].partition("=")[0] for word in words)
        message = f"{_BREAKS[flaw.code]}; lost to it: {names[:300]}"
        self.problems.append(Problem(code=flaw.code, message=message, span=self.piece.span(flaw.start, flaw.end)))

    def _env(self, word: Word) -> Option:
        text = self.piece.text[word.start : word.end]
        found = _ASSIGNMENT.match(text)
        name = found[1] if found else text
        cut = word.start + (found.end() if found else len(text))
        variable = self.expander.variables.get(name)
        if found:
            parts = [word.parts[0]._replace(text=word.parts[0].text.partition("=")[2]), *word.parts[1:]]
            content, resolved = self.expander.join(parts)
        else:
            content, resolved = (variable.text, variable.resolved) if variable else (f"${name}", False)
        raw = _unquoted(self.piece.text[cut : word.end])
        value: Value = typed(content) if resolved else Unresolved(raw or content)
        return Option(
            key=name, value=value, raw=raw if found else content, span=self.piece.span(word.start, word.end),
            key_span=self.piece.span(word.start, word.start + len(name)),
            value_span=self.piece.span(cut, word.end) if found else None,
            origin=Origin.ENV, scope="env", quoted=word.quoted,
        )  # fmt: skip

    def _sbatch(self) -> list[Option]:
        out = []
        for found in _SBATCH.finditer(self.piece.text):
            value, at = found["value"], found.span("value")
            out.append(
                Option(
                    key=found["key"], value=True if value is None else typed(value), raw=value,
                    span=self.piece.span(*found.span("all")), key_span=self.piece.span(*found.span("key")),
                    value_span=self.piece.span(*at) if value is not None else None,
                    origin=Origin.FLAG, scope="launcher",
                )
            )  # fmt: skip
        return out

    def _orphans(self, statements: list[Statement], index: int, words: list[Word]) -> tuple[int, bool]:
        """Flags on lines of their own below a command: part of it if the paste lost its backslashes, else lost."""
        statement, following = statements[index], index + 1
        lost: list[Word] = []
        merge = not statement.continued and statement.broken is None
        last = statement
        while last.ended_by == "newline" and following < len(statements) and self._is_flag_line(statements[following]):
            last = statements[following]
            merge = merge and not last.continued
            lost.extend(last.words)
            following += 1
        if not lost:
            return following, False
        if merge:
            words.extend(lost)
            self._problem(
                "missing_backslash", "the lines of this command have no backslashes; read as one command", lost[0]
            )
            return following, False
        flaw = statement.broken or Flaw("missing_backslash", lost[0].start, lost[0].end)
        names = ", ".join(self.piece.text[w.start : w.end] for w in lost if self._is_flag(w))
        message = f"{_BREAKS[flaw.code]}; lost to it: {names[:300]}"
        self.problems.append(Problem(code=flaw.code, message=message, span=self.piece.span(flaw.start, flaw.end)))
        return following, True

    def _is_flag_line(self, statement: Statement) -> bool:
        return bool(statement.words) and self._is_flag(statement.words[0])

    def _is_flag(self, word: Word) -> bool:
        text = self.piece.text[word.start : word.end]
        found = _FLAG.match(text)
        if found is not None:
            return len(found["key"]) > 1 or text[1:2] in DASHES
        return bool(_DOTTED.match(text))

    def _flawed(self, flaws: list[Flaw], statement: Statement) -> bool:
        inside = [f for f in flaws if statement.start <= f.start <= statement.end and f.code.startswith("unclosed")]
        return bool(inside)

    def _command(self, words: list[Word], prefix: int, statement: Statement, partial: bool) -> None:
        self.expander.unknown.clear()
        args = self.expander.expand(words[prefix:])
        elided = [arg for arg in args if _ELISION.fullmatch(arg.text)]
        args = [arg for arg in args if not _ELISION.fullmatch(arg.text)]
        found = launch.find(args)
        if found is None:
            self._nested(words[prefix:])
            return
        texts = self.piece.text
        env = [self._env(w) for w in words[:prefix] if _ASSIGNMENT.match(texts[w.start : w.end])]
        env += [o for w in args[: found.command] if (o := self._env_arg(w)) is not None]
        written = {option.key for option in env}
        exported = [option for name, option in self.exports.items() if name not in written]
        options, _ = self._options(args[found.command + 1 : found.program], "launcher", overrides=False)
        if found.rest == found.command:
            partial, options = True, []
        own, rest = self._options(args[found.rest :], "", overrides=found.overrides)
        start, end = words[0].start, statement.end if words[-1].end <= statement.end else words[-1].end
        span = self.piece.span(start, end)
        entry = None
        if found.entry and found.entry[0] == "$":
            partial = True
        elif found.entry:
            first, last = args[found.program], args[max(found.rest - 1, found.program)]
            place = self.piece.span(first.start, max(first.end, last.end if last.start >= first.start else first.end))
            entry = Recognised(value=found.entry, reason=f"the command runs {found.entry}", span=place)
        last_line = self.piece.position(end)[0]
        cut = not texts[end:].strip("\\ \t\n") and texts.rstrip().endswith("\\") and not statement.here
        self.commands.append(
            Command(
                span=span, lines=(span.line, last_line), entry=entry, launcher=found.launcher,
                options=(*self.batch, *exported, *env, *options, *own), positional=tuple(a.text for a in rest),
                config_files=_config_files(rest, own), partial=partial or bool(elided or self.expander.unknown) or cut,
            )
        )  # fmt: skip

    def _env_arg(self, arg: Arg) -> Option | None:
        """``NAME=value`` after a wrapper such as ``srun env``."""
        found = _ASSIGNMENT.match(arg.text)
        if found is None:
            return None
        at = arg.start + found.end()
        raw = arg.text[found.end() :]
        return Option(
            key=found[1], value=typed(raw) if arg.resolved else Unresolved(raw), raw=raw,
            origin=Origin.ENV, scope="env",
            span=self.piece.span(arg.start, arg.end), key_span=self.piece.span(arg.start, arg.start + len(found[1])),
            value_span=self.piece.span(at, arg.end), quoted=arg.quoted,
        )  # fmt: skip

    def _nested(self, words: list[Word]) -> None:
        """``bash -c '…'`` runs another command line."""
        texts = [self.piece.text[w.start : w.end] for w in words]
        at = next((n for n, text in enumerate(texts[:-1]) if text in ("-c", "-lc", "-ic")), -1)
        if at < 0 or self.depth > 3:
            return
        word = words[at + 1]
        if word.end - word.start > 2 and word.quoted:
            inner = _Reader(self.piece.cut(word.start + 1, word.end - 1), depth=self.depth + 1)
            inner.expander.variables.update(self.expander.variables)
            inner.exports.update(self.exports)
            inner.batch = self.batch
            script = inner.run()
            self.commands.extend(script.commands)
            self.problems.extend(script.problems)

    def _options(self, args: list[Arg], scope: str, *, overrides: bool) -> tuple[list[Option], list[Arg]]:
        out: list[Option] = []
        positional: list[Arg] = []
        at = 0
        while at < len(args):
            arg = args[at]
            at += 1
            flag = _flag(arg)
            if flag is None:
                override = hydra.read(arg, self.piece)
                if override is not None:
                    out.append(override)
                elif _loose(arg):
                    self.expander.unknown.append(arg.text)
                else:
                    positional.append(arg)
                continue
            values: list[Arg] = []
            if flag["value"] is None:
                while at < len(args) and self._is_value(args[at], values, overrides=overrides):
                    values.append(args[at])
                    at += 1
            out.append(self._flag_option(arg, flag, values, scope))
        return out, positional

    def _is_value(self, arg: Arg, before: list[Arg], *, overrides: bool) -> bool:
        if _flag(arg) is not None or _DOTTED.match(arg.text):
            return False
        if overrides and hydra.is_override(arg):
            return False
        return not (before and _loose(arg))  # an unknown $EXTRA after a complete flag may hold any flags

    def _flag_option(self, arg: Arg, flag: re.Match[str], values: list[Arg], scope: str) -> Option:
        piece = self.piece
        if arg.text[:1] in DASHES[1:] and all(p.code != "typographic" for p in self.problems):
            self._problem("typographic", _MESSAGES["typographic"], arg)
        written = piece.text[arg.start : arg.end]
        key_at = arg.start + max(written.find(flag["key"]), 0)
        key_span = piece.span(key_at, key_at + len(flag["key"]))
        if flag["value"] is not None:
            equals = arg.start + written.find("=") + 1
            raw = _unquoted(piece.text[equals : arg.end])
            value: Value = typed(flag["value"][1:]) if arg.resolved else Unresolved(raw)
            return Option(
                key=flag["key"], value=value, raw=raw, span=piece.span(arg.start, arg.end), key_span=key_span,
                value_span=piece.span(equals, arg.end), origin=Origin.FLAG, scope=scope, quoted=arg.quoted,
            )  # fmt: skip
        if not values:
            return Option(
                key=flag["key"], value=True, raw=None, span=piece.span(arg.start, arg.end), key_span=key_span,
                value_span=None, origin=Origin.FLAG, scope=scope,
            )  # fmt: skip
        raws = [_unquoted(piece.text[v.start : v.end]) for v in values]
        each: list[Value] = [typed(v.text) if v.resolved else Unresolved(r) for v, r in zip(values, raws, strict=True)]
        start, end = values[0].start, values[-1].end
        if end < start:  # words from different places: an array's end and what follows it
            start, end = values[0].start, values[0].end
        whole = piece.span(arg.start, end) if arg.start < start else piece.span(arg.start, arg.end)
        return Option(
            key=flag["key"], value=each[0] if len(each) == 1 else tuple(each), raw=" ".join(raws), span=whole,
            key_span=key_span, value_span=piece.span(start, end), origin=Origin.FLAG, scope=scope,
            quoted=len(values) == 1 and values[0].quoted,
        )  # fmt: skip

    def _report(self, flaws: list[Flaw]) -> None:
        seen: set[str] = {problem.code for problem in self.problems}
        for flaw in flaws:
            if flaw.code == "typographic" and "typographic" in seen:
                continue
            seen.add(flaw.code)
            span = self.piece.span(flaw.start, flaw.end)
            self.problems.append(Problem(code=flaw.code, message=_MESSAGES[flaw.code], span=span))

    def _problem(self, code: str, message: str, where: Word | Arg) -> None:
        self.problems.append(Problem(code=code, message=message, span=self.piece.span(where.start, where.end)))


def _flag(arg: Arg) -> re.Match[str] | None:
    return _FLAG.fullmatch(arg.text) if arg.text[:1] in DASHES and arg.text else None


def _loose(arg: Arg) -> bool:
    return not arg.resolved and not arg.quoted and arg.text.startswith("$")


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in "'\"“”‘’" and text[-1] in "'\"“”‘’":
        return text[1:-1]
    return text


def _config_files(positional: list[Arg], options: list[Option]) -> tuple[str, ...]:
    named = [arg.text for arg in positional if _CONFIG_FILE.fullmatch(arg.text)]
    for option in options:
        if isinstance(option.value, str) and _CONFIG_FILE.fullmatch(option.value):
            named.append(option.value)
    return tuple(dict.fromkeys(named))
