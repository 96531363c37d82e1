"""Variables, arithmetic and arrays of shell text, evaluated only as far as the text itself decides.

Whatever depends on the machine (``$HOME``, ``$(nproc)``, ``$1``) stays unresolved and is never taken for a value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.readers.shell_lex import Lexer, Part, Word

_ARITHMETIC = regex(r"[\d\s+\-*/%()]{1,120}")
_VARIABLE = regex(r"\$\{?([A-Za-z_]\w*)\}?|\b([A-Za-z_]\w*)\b")
_PARAMETER = regex(r"([A-Za-z_]\w*|[0-9@*#])(\[[@*]\])?(?:(:?[-=])(.*))?", re.DOTALL)
_EXPR = regex(r"\s*expr\s+(.*)", re.DOTALL)
_ECHO = regex(r"\s*echo\s+(?:-n\s+)?([^|;&<>`]*)")
_LONGEST = 65_536
_MOST = 20_000
_DEEPEST = 8


class Arg(NamedTuple):
    """An expanded word. ``start:end`` is its place: in use or, for an array's element, in the definition."""

    text: str
    start: int
    end: int
    resolved: bool
    quoted: bool


class Variable(NamedTuple):
    """A variable's value. ``args``: the words of an array, a here-document or a text of several flags."""

    text: str
    resolved: bool
    args: tuple[Arg, ...] | None = None


class Expander:
    def __init__(self, text: str) -> None:
        self.text = text
        self.variables: dict[str, Variable] = {}
        self.unknown: list[str] = []  # whole words that could hold any number of flags

    def assign(self, name: str, word: Word, *, append: bool, conditional: bool) -> None:
        """``NAME=word``; in an ``if`` branch a second, different value makes the variable unknown."""
        before = self.variables.get(name)
        value = self._value(word, cut=self.text.find("=", word.start, word.end) + 1)
        if append and before is not None:
            args = None
            if before.args is not None or value.args is not None:
                args = ((before.args or ()) + (value.args or ()))[:_MOST]
            value = Variable((before.text + value.text)[:_LONGEST], before.resolved and value.resolved, args)
        elif conditional and before is not None and before.text != value.text:
            value = Variable(value.text, False)
        self.variables[name] = value

    def forget(self, name: str) -> None:
        """The variable takes several values (a loop's)."""
        self.variables[name] = Variable("", False)

    def assign_text(self, name: str, start: int, end: int) -> None:
        """``NAME`` holds the words of ``text[start:end]`` (a here-document read into it)."""
        self.variables[name] = Variable(self.text[start:end][:_LONGEST], True, self._words(start, end))

    def expand(self, words: Iterable[Word]) -> list[Arg]:
        out: list[Arg] = []
        for word in words:
            if len(out) > _MOST:
                break
            out.extend(self._expand(word))
        return out

    def _expand(self, word: Word) -> Iterable[Arg]:
        parts = word.parts
        if len(parts) == 1:
            part = parts[0]
            if part.kind == "text":
                return (Arg(part.text, word.start, word.end, True, word.quoted),)
            if part.kind == "var":
                return self._whole(word, part)
        text, resolved = self.join(parts)
        return (Arg(text, word.start, word.end, resolved, word.quoted),)

    def _whole(self, word: Word, part: Part) -> tuple[Arg, ...]:
        """A word that is nothing but one variable: it may stand for any number of words."""
        found = _PARAMETER.fullmatch(part.text)
        name = found[1] if found else ""
        if name in ("@", "*"):
            return ()
        variable = self.variables.get(name)
        if variable is None and found and found[2]:
            self.unknown.append(part.text)
            return ()
        if variable is not None and variable.args is not None and (found[2] or not part.quoted):  # type: ignore[index]
            if part.quoted:
                return variable.args
            return tuple(inner for arg in variable.args for inner in self._split(arg))[:_MOST]
        text, resolved = self._parameter(part.text, 0)
        if resolved and not text and not part.quoted:
            return ()
        if resolved and not part.quoted and not word.quoted and len(text.split()) > 1:
            return tuple(Arg(each, word.start, word.end, True, False) for each in text.split()[:_MOST])
        return (Arg(text, word.start, word.end, resolved, part.quoted or word.quoted),)

    def _split(self, arg: Arg) -> tuple[Arg, ...]:
        """The words of an array's element such as ``"--num-workers 1"`` where the array is used without quotes."""
        if arg.quoted and arg.text.startswith("-") and len(arg.text.split()) > 1:
            return self._words(arg.start + 1, arg.end - 1)
        return (arg,)

    def _value(self, word: Word, cut: int) -> Variable:
        if word.items is not None:
            return Variable("", True, tuple(self.expand(word.items)[:_MOST]))
        parts = list(word.parts)
        first = parts[0]
        parts[0] = first._replace(text=first.text.partition("=")[2], at=-1)
        text, resolved = self.join(parts)
        if any(p.kind == "here" for p in parts):
            here = next(p for p in parts if p.kind == "here")
            return Variable(text, True, self._words(here.at, here.at + len(here.text)))
        if word.quoted and word.end - cut >= 2 and re.search(r"\s", text):
            return Variable(text, resolved, self._words(cut + 1, word.end - 1))
        return Variable(text, resolved)

    def _words(self, start: int, end: int) -> tuple[Arg, ...]:
        """Words of a stretch read as a command line, wherever its lines end."""
        lexer = Lexer(self.text, start, end)
        words = [word for statement in lexer.run() for word in statement.words]
        return tuple(self.expand(words)[:_MOST])

    def join(self, parts: Iterable[Part], depth: int = 0) -> tuple[str, bool]:
        """Text of adjacent parts, and whether all of it is known. Unknown parts stay as written."""
        out: list[str] = []
        resolved = True
        for part in parts:
            if part.kind in ("text", "here"):
                out.append(part.text)
                continue
            text, known = self._evaluate(part, depth)
            out.append(text)
            resolved = resolved and known
        joined = "".join(out)
        return (joined, resolved) if len(joined) <= _LONGEST else (joined[:_LONGEST], False)

    def _evaluate(self, part: Part, depth: int) -> tuple[str, bool]:
        if part.kind == "var":
            return self._parameter(part.text, depth)
        if part.kind == "arith":
            value = self._arithmetic(part.text)
            return (value, True) if value is not None else (f"$(({part.text}))", False)
        expression = _EXPR.fullmatch(part.text)
        if expression:
            value = self._arithmetic(expression[1].replace("\\", ""))
            if value is not None:
                return value, True
        echo = _ECHO.fullmatch(part.text)
        if echo and depth < _DEEPEST:
            words = [word for statement in Lexer(echo[1]).run() for word in statement.words]
            texts = [self.join(word.parts, depth + 1) for word in words]
            if all(known for _, known in texts):
                return " ".join(text for text, _ in texts), True
        return f"$({part.text})", False

    def _parameter(self, text: str, depth: int) -> tuple[str, bool]:
        found = _PARAMETER.fullmatch(text)
        raw = f"${text}" if text.isidentifier() else f"${{{text}}}"
        if not found:
            return raw, False
        variable = self.variables.get(found[1])
        if variable is not None and variable.resolved:
            value = variable.text
            if variable.args is not None and not value:
                value = " ".join(arg.text for arg in variable.args[:_MOST])[:_LONGEST]
            if value or not (found[3] or "").startswith(":"):
                return value, True
        if variable is None or variable.resolved:
            return self._default(found, raw, depth)
        return raw, False

    def _default(self, found: re.Match[str], raw: str, depth: int) -> tuple[str, bool]:
        if found[3] is None or depth >= _DEEPEST:
            return raw, False
        words = [word for statement in Lexer(found[4]).run() for word in statement.words]
        texts = [self.join(word.parts, depth + 1) for word in words]
        return " ".join(text for text, _ in texts), all(known for _, known in texts)

    def _arithmetic(self, text: str) -> str | None:
        """An integer expression's value; shell division truncates towards zero."""
        unknown = False

        def put(match: re.Match[str]) -> str:
            nonlocal unknown
            name = match[1] or match[2]
            variable = self.variables.get(name)
            if variable is None or not variable.resolved or not re.fullmatch(r"-?\d{1,15}", variable.text):
                unknown = True
                return "0"
            return variable.text

        replaced = _VARIABLE.sub(put, text.replace("${", "$").replace("}", ""))
        if unknown or not _ARITHMETIC.fullmatch(replaced):
            return None
        try:
            value = _calculate(ast.parse(replaced.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            return None
        return str(value)


def _calculate(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _calculate(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _calculate(node.left), _calculate(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        if isinstance(node.op, ast.Div | ast.FloorDiv):
            return quotient
        if isinstance(node.op, ast.Mod):
            return left - quotient * right
    raise ValueError("not integer arithmetic")
