"""POSIX-shell text → statements of words with offsets: quotes, continuations, comments, here-documents. No error.

It reads what people paste rather than what a shell accepts: full-width blanks and curly quotes count as the characters
they were before a chat program changed them, and a backslash that glues two flags together still separates them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from trainmedic.kb.lazy import regex

_BLANK = " \t\u00a0\u3000\u200b\u200e\ufeff\u2002\u2003\u2009\v\f"
_TOKEN = regex(
    rf"(?P<blank>[{_BLANK}]+)|(?P<cont>\\\n)|(?P<bad>\\[{_BLANK}]+(?=\n|#|\Z))|(?P<newline>\n)|(?P<comment>#[^\n]*)"
    r"|(?P<here><<-?[ \t]*(?P<q>['\"]?)(?P<tag>[A-Za-z_]\w*)(?P=q))"
    r"|(?P<redirect>(?:&>>?|\d*(?:<<<|>>|>\||>&|<&|<>|>|<)))|(?P<op>&&|\|\||;;|[;|&()])"
    rf"|(?P<lit>[^{_BLANK}\n\\#'\"`$;&|<>()“”‘’]+)"
)
_LITERAL = regex(rf"[^{_BLANK}\n\\'\"`$;&|<>()“”‘’]+")
_NAME = regex(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")
_IN_DOUBLE = regex(r'[^"“”\\$`]+')
_FLAG_INSIDE = regex(r"\n[ \t]*--?[A-Za-z]")
_CAT_HERE = regex(
    r"\$\(\s*cat\s*<<-?[ \t]*(['\"]?)(?P<tag>[A-Za-z_]\w*)\1[ \t]*\n(?P<body>(?:.*\n)*?)[ \t]*(?P=tag)[ \t]*\n?\s*\)"
)
_ANSI = regex(r"\\(.)", re.DOTALL)
_ANSI_MEANING = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_SMART_SINGLE = "‘’"
_REACH = 8192  # how far a closing bracket is looked for; keeps unclosed ones linear
_PATIENCE = 50  # so many brackets that never close are not script: the others are looked for nearby only
_SHORT_REACH = 128


class Part(NamedTuple):
    """A stretch of a word. ``kind``: text | var | sub | arith | here.

    ``text`` is the unescaped text, or the inside of the ``$…``; ``at`` is its offset where it stands verbatim, else -1.
    """

    kind: str
    text: str
    quoted: bool
    at: int = -1


class Word(NamedTuple):
    """One shell word at ``start:end`` (offsets into the text lexed)."""

    start: int
    end: int
    parts: tuple[Part, ...]
    quoted: bool
    items: tuple[Word, ...] | None = None  # the elements of NAME=( … )


class Here(NamedTuple):
    """The body of a here-document, without its terminator line."""

    start: int
    end: int
    closed: bool


class Flaw(NamedTuple):
    code: str
    start: int
    end: int


@dataclass(slots=True)
class Statement:
    """A simple command: words up to a line end or an operator. ``continued``: at least one ``\\`` line end inside."""

    words: list[Word] = field(default_factory=list)
    here: list[Here] = field(default_factory=list)
    target: Word | None = None  # where > writes
    continued: bool = False
    ended_by: str = ""  # newline | ; | | | & | && | || | ( | ) | "" at the end of the text
    broken: Flaw | None = None  # why a continued command ends where it does not look like it
    start: int = 0
    end: int = 0


class Lexer:
    """One pass over ``text[start:end]``; offsets stay those of ``text``."""

    def __init__(self, text: str, start: int = 0, end: int | None = None, *, array: bool = False) -> None:
        self.text = text
        self._array = array  # inside NAME=( … ): line ends only separate, the closing bracket ends
        self._end = start  # where the current word ends, known once its separator is read
        self.pos = start
        self.stop = len(text) if end is None else end
        self.statements: list[Statement] = []
        self.flaws: list[Flaw] = []
        self._now = Statement(start=start)
        self._parts: list[Part] = []
        self._word_start = -1
        self._quoted = False
        self._redirect = ""
        self._here: list[str] = []
        self.closed = False
        self._in_vain = 0  # brackets looked for and not found
        self._no_more: set[str] = set()  # closing characters known not to come any more

    def run(self) -> list[Statement]:
        """All statements that hold anything, in order."""
        text, match = self.text, _TOKEN.match
        while self.pos < self.stop:
            pos = self.pos
            token = match(text, pos, self.stop)
            kind = token.lastgroup if token else None
            if token is None:
                self._special(text[pos])
            elif kind == "lit":
                self._literal(token.group(), pos, token.end())
            elif kind == "comment" and self._word_start >= 0:
                whole = _LITERAL.match(text, pos, self.stop)
                end = whole.end() if whole else pos + 1
                self._literal(text[pos:end], pos, end)
            else:
                self._separate(kind or "", token, pos)
        self._end = self.stop
        self._finish_word()
        self._finish_statement("")
        return self.statements

    def _separate(self, kind: str, token: re.Match[str], pos: int) -> None:
        self.pos = token.end()
        self._end = pos
        if kind == "cont":
            self._continuation(pos)
            return
        if token.group() == "(" and self._opens_array():
            self._elements()
            return
        self._finish_word()
        if kind == "comment":
            if self._now.words:
                self._now.broken = Flaw("comment_in_command", pos, token.end())
        elif kind == "bad":
            self._now.broken = Flaw("blank_after_backslash", pos, token.end())
            self._finish_statement("newline")
        elif kind == "newline":
            if not self._array:
                self._newline()
        elif kind == "here":
            self._here.append(token["tag"])
        elif kind == "redirect":
            self._redirect = token.group()
        elif kind == "op":
            if self._array and token.group() == ")":
                self.closed, self.stop = True, self.pos
            elif not self._array:
                self._finish_statement(token.group())

    def _opens_array(self) -> bool:
        return not self._array and bool(self._parts) and not self._quoted and self._parts[-1].text.endswith("=")

    def _elements(self) -> None:
        inner = Lexer(self.text, self.pos, self.stop, array=True)
        statements = inner.run()
        self.flaws.extend(inner.flaws)
        if not inner.closed:
            self.flaws.append(Flaw("unclosed_bracket", self._word_start, self.pos))
        items = tuple(word for statement in statements for word in statement.words)
        word = Word(self._word_start, inner.pos, tuple(self._parts), False, items)
        self._parts, self._word_start = [], -1
        self._add(word)
        self.pos = inner.pos

    def _continuation(self, pos: int) -> None:
        self._now.continued = True
        if self._word_start >= 0 and self.text[self.pos : self.pos + 1] in ("-", "+", "~"):
            self.flaws.append(Flaw("no_blank_before_backslash", pos, pos + 1))
            self._finish_word()
        elif self._word_start >= 0 and self.text[self.pos : self.pos + 1] in _BLANK:
            self._finish_word()

    def _literal(self, literal: str, pos: int, end: int) -> None:
        if self._word_start < 0:
            self._word_start = pos
        self._parts.append(Part("text", literal, False))
        self.pos = end

    def _special(self, char: str) -> None:
        pos = self.pos
        if self._word_start < 0:
            self._word_start = pos
        if char in "'" + _SMART_SINGLE:
            self._single(char)
        elif char in '"“”':
            self._double(char)
        elif char == "$":
            self._dollar(quoted=False)
        elif char == "`":
            self._backtick(quoted=False)
        else:  # a backslash before anything but a line end
            self._parts.append(Part("text", self.text[pos + 1 : min(pos + 2, self.stop)], False))
            self.pos = min(pos + 2, self.stop)

    def _single(self, char: str) -> None:
        pos = self.pos
        closers = _SMART_SINGLE if char in _SMART_SINGLE else "'"
        end = self._find(closers, pos + 1)
        if end < 0:
            self._unclosed(pos)
            return
        self._quote_flaw(char, pos)
        self._parts.append(Part("text", self.text[pos + 1 : end], True, pos + 1))
        self._quoted = True
        self.pos = end + 1

    def _double(self, char: str) -> None:
        pos = self.pos
        closers = '"' if char == '"' else '"“”'
        if self._find(closers, pos + 1) < 0:
            self._unclosed(pos)
            return
        self._quote_flaw(char, pos)
        self._quoted = True
        self.pos = pos + 1
        text, stop = self.text, self.stop
        while self.pos < stop and text[self.pos] not in closers:
            chunk = _IN_DOUBLE.match(text, self.pos, stop)
            here = text[self.pos]
            if chunk:
                self._parts.append(Part("text", chunk.group(), True, self.pos))
                self.pos = chunk.end()
            elif here == "\\":
                follower = text[self.pos + 1 : min(self.pos + 2, stop)]
                kept = "" if follower == "\n" else follower if follower in '"\\$`' else "\\" + follower
                self._parts.append(Part("text", kept, True))
                self.pos = min(self.pos + 2, stop)
            elif here == "$":
                self._dollar(quoted=True)
            elif here == "`":
                self._backtick(quoted=True)
            else:  # a curly quote inside straight ones
                self._parts.append(Part("text", here, True))
                self.pos += 1
        self.pos = min(self.pos + 1, stop)

    def _dollar(self, *, quoted: bool) -> None:
        pos, text = self.pos, self.text
        rest = text[pos + 1 : min(pos + 3, self.stop)]
        if rest.startswith("'") and not quoted:
            end = self._find("'", pos + 2)
            if end >= 0:
                self._parts.append(Part("text", _ansi(text[pos + 2 : end]), True))
                self._quoted, self.pos = True, end + 1
                return
        here = _CAT_HERE.match(text, pos, self.stop)
        if here:
            self._parts.append(Part("here", here["body"], quoted, here.start("body")))
            self.pos = here.end()
            return
        closer = {"((": "))", "{": "}", "(": ")"}.get(rest if rest == "((" else rest[:1], "")
        if closer:
            opener = len(closer)
            end = self._matching(pos + 1, text[pos + 1], closer[0])
            if end >= 0:
                kind = {"))": "arith", "}": "var", ")": "sub"}[closer]
                inner = text[pos + 1 + opener : end + 1 - opener]
                if kind == "arith" and text[end - 1] != ")":
                    kind, inner = "sub", text[pos + 2 : end]
                self._parts.append(Part(kind, inner, quoted))
                self.pos = end + 1
                return
        name = _NAME.match(text, pos, self.stop)
        if name:
            self._parts.append(Part("var", name.group()[1:], quoted))
            self.pos = name.end()
        else:
            self._parts.append(Part("text", "$", quoted))
            self.pos = pos + 1

    def _backtick(self, *, quoted: bool) -> None:
        end = self.text.find("`", self.pos + 1, min(self.pos + 1 + _REACH, self.stop))
        if end < 0 or "\n" in self.text[self.pos : end]:
            self._parts.append(Part("text", "", quoted))  # a stray Markdown backtick
            self.pos += 1
        else:
            self._parts.append(Part("sub", self.text[self.pos + 1 : end], quoted))
            self.pos = end + 1

    def _matching(self, pos: int, opener: str, closer: str) -> int:
        depth, quote = 0, ""
        text = self.text
        reach = _REACH if self._in_vain < _PATIENCE else _SHORT_REACH
        for at in range(pos, min(pos + reach, self.stop)):
            char = text[at]
            if quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char == opener:
                depth += 1
            elif char == closer:
                depth -= 1
                if depth == 0:
                    return at
        self._in_vain += 1
        return -1

    def _find(self, closers: str, start: int) -> int:
        """Offset of the next closing quote, or -1. A stretch that swallows flags of later lines is not a quotation."""
        if closers in self._no_more:
            return -1
        found = [at for at in (self.text.find(c, start, self.stop) for c in closers) if at >= 0]
        if not found:
            self._no_more.add(closers)
            return -1
        words = self._now.words
        command_string = bool(words) and any(p.text in ("-c", "-lc", "-ic") for p in words[-1].parts)
        assigned = bool(self._parts) and self._parts[-1].text.endswith("=")
        if not command_string and not assigned and _FLAG_INSIDE.search(self.text, start, min(found)):
            return -1
        return min(found)

    def _unclosed(self, pos: int) -> None:
        end = self.text.find("\n", pos, self.stop)
        end = self.stop if end < 0 else end
        text = self.text[pos + 1 : end]
        tail = len(text) - len(text.rstrip(_BLANK + "\\"))
        self.flaws.append(Flaw("unclosed_quote", pos, end - tail))
        self._parts.append(Part("text", text[: len(text) - tail], True))
        self._quoted, self.pos = True, end - tail

    def _quote_flaw(self, char: str, pos: int) -> None:
        if char not in "'\"":
            self.flaws.append(Flaw("typographic", pos, pos + 1))

    def _newline(self) -> None:
        statement = self._now
        if self._here:
            for tag in self._here:
                self._body(statement, tag)
            self._here.clear()
        self._finish_statement("newline")

    def _body(self, statement: Statement, tag: str) -> None:
        end = re.compile(rf"^[ \t]*{tag}[ \t]*$", re.MULTILINE).search(self.text, self.pos, self.stop)
        if end is None:
            self.flaws.append(Flaw("unclosed_heredoc", statement.start, self.pos))
            statement.here.append(Here(self.pos, self.stop, False))
            self.pos = self.stop
        else:
            statement.here.append(Here(self.pos, end.start(), True))
            self.pos = min(end.end() + 1, self.stop)

    def _finish_word(self) -> None:
        if self._word_start < 0:
            return
        word = Word(self._word_start, self._end, tuple(self._parts), self._quoted)
        self._parts, self._word_start, self._quoted = [], -1, False
        if word.quoted or any(part.text for part in word.parts):  # not a stray Markdown backtick
            self._add(word)

    def _add(self, word: Word) -> None:
        if self._redirect:
            if ">" in self._redirect and "&" not in self._redirect:
                self._now.target = word
            self._redirect = ""
        else:
            if not self._now.words:
                self._now.start = word.start
            self._now.words.append(word)
        self._now.end = word.end

    def _finish_statement(self, ended_by: str) -> None:
        statement = self._now
        self._redirect = ""
        if ended_by == "" and self._here:
            self.flaws.append(Flaw("unclosed_heredoc", statement.start, self.pos))
            self._here.clear()
        if statement.words or statement.here:
            statement.ended_by = ended_by
            self.statements.append(statement)
        self._now = Statement(start=self.pos)


def _ansi(text: str) -> str:
    """The text of ``$'…'`` with its usual escapes resolved."""
    return _ANSI.sub(lambda match: _ANSI_MEANING.get(match[1], match[0]), text)
