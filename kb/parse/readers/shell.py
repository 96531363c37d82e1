"""A shell script or pasted command → its commands: launcher, program, options with their positions. Never raises."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Origin, Recognised, Unresolved, Value
from trainmedic.kb.parse.readers import launch
from trainmedic.kb.parse.readers.hydra import typed
from trainmedic.kb.parse.readers.shell_expand import Expander
from trainmedic.kb.parse.readers.shell_lex import Flaw, Lexer, Statement, Word
from trainmedic.kb.parse.readers.shell_options import (
    ASSIGNMENT,
    environment_option,
    is_flag,
    read_arguments,
    unquoted,
)
from trainmedic.kb.parse.source import Piece

_SBATCH = regex(r"^#SBATCH[ \t]+(?P<all>--?(?P<key>[\w-]+)(?:[= \t][ \t]*(?P<value>[^\s#]+))?)", re.MULTILINE)
_ELISION = regex(r"\.{3,}|…+|\[\.\.\.\]|<\.\.\.>")
_EXPORTED = regex(r"[A-Za-z_]\w*(?:\Z|\+?=)")
_KEYWORDS = {"then", "else", "do", "{", "!", "if", "elif", "while", "until", "time", "(", "nohup", "exec", "eval", "+"}
_NESTING = {"if": 1, "case": 1, "fi": -1, "esac": -1}
_EXPORTS = {"export", "declare", "local", "readonly", "typeset"}
_COMMAND_STRING_FLAGS = ("-c", "-lc", "-ic")
_DEEPEST_SHELL = 3
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
    ``positional``: the program's arguments without a flag; ``config_files`` those of them, and of the flags' values,
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
    """The commands of a shell text, the files it writes by here-document (name, content), the options it exports."""

    commands: tuple[Command, ...] = ()
    files: tuple[tuple[str, Piece], ...] = ()
    exports: tuple[Option, ...] = ()
    problems: tuple[Problem, ...] = ()


def read(piece: Piece) -> Script:
    return _ScriptReader(piece).run()


class _ScriptReader:
    """Walks the statements of a script and keeps its variables, exports and nesting."""

    def __init__(self, piece: Piece, *, depth: int = 0) -> None:
        self.piece = piece
        self.depth = depth
        self.expander = Expander(piece.text)
        self.exports: dict[str, Option] = {}
        self.commands: list[Command] = []
        self.files: list[tuple[str, Piece]] = []
        self.problems: list[Problem] = []
        self.nesting = 0
        self.sbatch_options = tuple(self._sbatch())

    def run(self) -> Script:
        lexer = Lexer(self.piece.text)
        statements = lexer.run()
        flaws = [flaw for flaw in lexer.flaws if flaw.code in _MESSAGES]
        index = 0
        while index < len(statements):
            index = self._statement(statements, index, flaws)
        self._report(flaws)
        return Script(
            commands=tuple(self.commands),
            files=tuple(self.files),
            exports=tuple(self.exports.values()),
            problems=tuple(self.problems),
        )

    def _text(self, word: Word) -> str:
        return self.piece.text[word.start : word.end]

    def _statement(self, statements: list[Statement], index: int, flaws: list[Flaw]) -> int:
        """Read one statement; returns the index of the next one."""
        statement = statements[index]
        words = self._without_keywords(statement.words)
        prefix = self._assignments_before(words)
        following = index + 1
        if not words or not prefix < len(words):
            for word in words:
                self._assign(word, exported=False)
            self._lost_assignments(words, statement)
            return following
        name = self._text(words[prefix])
        if name in _EXPORTS:
            for word in words[prefix + 1 :]:
                self._assign(word, exported=True)
            return following
        if name in ("read", "mapfile") and statement.here:
            here = statement.here[0]
            self.expander.assign_text(self._text(words[-1]), here.start, here.end)
            return following
        if statement.here and statement.target is not None:
            here = statement.here[0]
            target, _ = self.expander.join(statement.target.parts)
            self.files.append((target, self.piece.cut(here.start, here.end)))
            return following
        if name == "for" and len(words) > 1:
            self.expander.forget(self._text(words[1]))
            return following
        words = list(words)
        following, partial = self._flag_lines_below(statements, index, words)
        self._command(words, prefix, statement, partial or _is_unclosed(statement, flaws))
        return following

    def _without_keywords(self, words: list[Word]) -> list[Word]:
        for at, word in enumerate(words):
            text = self._text(word)
            self.nesting = max(0, self.nesting + _NESTING.get(text, 0))
            if text not in _KEYWORDS:
                return words[at:]
        return []

    def _assignments_before(self, words: list[Word]) -> int:
        """The number of assignments before the command (``env`` and ``%env`` count as one of them)."""
        for at, word in enumerate(words):
            text = self._text(word)
            is_assignment = bool(word.parts) and ASSIGNMENT.match(text) and not word.parts[0].quoted
            if not (is_assignment or (text in ("env", "%env") and at == 0)):
                return at
        return len(words)

    def _assign(self, word: Word, *, exported: bool) -> None:
        text = self._text(word)
        assignment = ASSIGNMENT.match(text)
        if assignment:
            self.expander.assign(assignment[1], word, append=bool(assignment[2]), conditional=self.nesting > 0)
        if exported and _EXPORTED.match(text):
            self.exports[assignment[1] if assignment else text] = self._environment_option(word)

    def _lost_assignments(self, words: list[Word], statement: Statement) -> None:
        """Assignments that a comment separates from the program they were meant for."""
        flaw = statement.broken
        if flaw is None or flaw.code != "comment_in_command" or not statement.continued:
            return
        self._break(flaw, [self._text(word).partition("=")[0] for word in words])

    def _environment_option(self, word: Word) -> Option:
        """``NAME=value`` before a command or behind ``export``, or an exported ``NAME`` with the value it has."""
        text = self._text(word)
        assignment = ASSIGNMENT.match(text)
        name = assignment[1] if assignment else text
        value_at = word.start + (assignment.end() if assignment else len(text))
        variable = self.expander.variables.get(name)
        if assignment:
            parts = [word.parts[0]._replace(text=word.parts[0].text.partition("=")[2]), *word.parts[1:]]
            content, resolved = self.expander.join(parts)
        else:
            content, resolved = (variable.text, variable.resolved) if variable else (f"${name}", False)
        raw = unquoted(self.piece.text[value_at : word.end])
        value: Value = typed(content) if resolved else Unresolved(raw or content)
        return Option(
            key=name,
            value=value,
            raw=raw if assignment else content,
            span=self.piece.span(word.start, word.end),
            key_span=self.piece.span(word.start, word.start + len(name)),
            value_span=self.piece.span(value_at, word.end) if assignment else None,
            origin=Origin.ENV,
            scope="env",
            quoted=word.quoted,
        )

    def _sbatch(self) -> list[Option]:
        """The options of ``#SBATCH`` lines, which count for every command of the script."""
        return [
            Option(
                key=line["key"],
                value=True if line["value"] is None else typed(line["value"]),
                raw=line["value"],
                span=self.piece.span(*line.span("all")),
                key_span=self.piece.span(*line.span("key")),
                value_span=self.piece.span(*line.span("value")) if line["value"] is not None else None,
                origin=Origin.FLAG,
                scope="launcher",
            )
            for line in _SBATCH.finditer(self.piece.text)
        ]

    def _flag_lines_below(self, statements: list[Statement], index: int, words: list[Word]) -> tuple[int, bool]:
        """Flags on lines of their own below a command.

        If the whole paste lost its backslashes they belong to it and are added to ``words``, else the shell would not
        pass them on either. Returns the next statement's index and whether the command lost flags.
        """
        statement, following = statements[index], index + 1
        flag_words: list[Word] = []
        no_backslashes = not statement.continued and statement.broken is None
        last = statement
        while last.ended_by == "newline" and following < len(statements) and self._is_flag_line(statements[following]):
            last = statements[following]
            no_backslashes = no_backslashes and not last.continued
            flag_words.extend(last.words)
            following += 1
        if not flag_words:
            return following, False
        if is_flag(self._text(words[0])):  # options without their program: a list, whatever ends its lines
            words.extend(flag_words)
            return following, False
        if no_backslashes:
            words.extend(flag_words)
            message = "the lines of this command have no backslashes; read as one command"
            self._problem("missing_backslash", message, flag_words[0].start, flag_words[0].end)
            return following, False
        flaw = statement.broken or Flaw("missing_backslash", flag_words[0].start, flag_words[0].end)
        self._break(flaw, [text for word in flag_words if is_flag(text := self._text(word))])
        return following, True

    def _is_flag_line(self, statement: Statement) -> bool:
        return bool(statement.words) and is_flag(self._text(statement.words[0]))

    def _command(self, words: list[Word], prefix: int, statement: Statement, partial: bool) -> None:
        self.expander.unknown.clear()
        expanded = self.expander.expand(words[prefix:])
        args = [arg for arg in expanded if not _ELISION.fullmatch(arg.text)]
        start = launch.find(args)
        if start is None:
            self._command_string(words[prefix:])
            return
        environment = [self._environment_option(word) for word in words[:prefix] if ASSIGNMENT.match(self._text(word))]
        environment += [
            option for arg in args[: start.command] if (option := environment_option(arg, self.piece)) is not None
        ]
        keys = {option.key for option in environment}
        exported = [option for name, option in self.exports.items() if name not in keys]
        launcher = read_arguments(args[start.command + 1 : start.program], self.piece, scope="launcher")
        launcher_options = launcher.options
        if start.rest == start.command:
            partial, launcher_options = True, []
        own = read_arguments(args[start.rest :], self.piece, overrides=start.overrides)
        for dash in (launcher.dash, own.dash):
            if dash is not None and all(problem.code != "typographic" for problem in self.problems):
                self._problem("typographic", _MESSAGES["typographic"], dash.start, dash.end)
        begin, end = words[0].start, max(statement.end, words[-1].end)
        span = self.piece.span(begin, end)
        entry = None
        if start.entry and start.entry[0] == "$":
            partial = True
        elif start.entry:
            first, last = args[start.program], args[max(start.rest - 1, start.program)]
            entry_end = max(first.end, last.end) if last.start >= first.start else first.end
            place = self.piece.span(first.start, entry_end)
            entry = Recognised(value=start.entry, reason=f"the command runs {start.entry}", span=place)
        elided = len(args) < len(expanded)
        unknown = self.expander.unknown or launcher.unknown or own.unknown
        self.commands.append(
            Command(
                span=span,
                lines=(span.line, self.piece.position(end)[0]),
                entry=entry,
                launcher=start.launcher,
                options=(*self.sbatch_options, *exported, *environment, *launcher_options, *own.options),
                positional=tuple(arg.text for arg in own.positional),
                config_files=own.config_files(),
                partial=partial or elided or bool(unknown) or self._is_cut_off(statement, end),
            )
        )

    def _is_cut_off(self, statement: Statement, end: int) -> bool:
        text = self.piece.text
        return not text[end:].strip("\\ \t\n") and text.rstrip().endswith("\\") and not statement.here

    def _command_string(self, words: list[Word]) -> None:
        """``bash -c '…'`` runs another command line."""
        at = next((at for at, word in enumerate(words[:-1]) if self._text(word) in _COMMAND_STRING_FLAGS), -1)
        if at < 0 or self.depth > _DEEPEST_SHELL:
            return
        word = words[at + 1]
        if word.end - word.start > 2 and word.quoted:
            inner = _ScriptReader(self.piece.cut(word.start + 1, word.end - 1), depth=self.depth + 1)
            inner.expander.variables.update(self.expander.variables)
            inner.exports.update(self.exports)
            inner.sbatch_options = self.sbatch_options
            script = inner.run()
            self.commands.extend(script.commands)
            self.problems.extend(script.problems)

    def _report(self, flaws: list[Flaw]) -> None:
        codes = {problem.code for problem in self.problems}
        for flaw in flaws:
            if flaw.code == "typographic" and "typographic" in codes:
                continue
            codes.add(flaw.code)
            self._problem(flaw.code, _MESSAGES[flaw.code], flaw.start, flaw.end)

    def _break(self, flaw: Flaw, names: list[str]) -> None:
        """A continued command ends too early, and loses the flags or variables called ``names``."""
        message = f"{_BREAKS[flaw.code]}; lost to it: {', '.join(names)[:300]}"
        self._problem(flaw.code, message, flaw.start, flaw.end)

    def _problem(self, code: str, message: str, start: int, end: int) -> None:
        self.problems.append(Problem(code=code, message=message, span=self.piece.span(start, end)))


def _is_unclosed(statement: Statement, flaws: list[Flaw]) -> bool:
    return any(statement.start <= flaw.start <= statement.end and flaw.code.startswith("unclosed") for flaw in flaws)
