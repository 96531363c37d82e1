"""Logged rows: what a trainer printed about a step, whatever the trainer.

Read are Hugging Face dicts (also behind a progress bar, a rank prefix or a time), JSON lines, ``trainer_state.json``,
progress-bar postfixes (OpenRLHF), ``step:1 - key:value`` lines (verl), Megatron's ``|`` lines, CSV and notebook tables,
lists with one metric per line (under a heading ``==== Step 3/100 ====``, as NeMo-RL prints it), and rows that a user
copied into his sentence, in half-width or full-width punctuation.
A line counts as a row only if it names at least one outcome (`metrics.makes_row`): a learning rate alone is a setting.

The reading is in two passes: numbers first, as plain tuples; spans and `Metric` values only for the rows that are kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Metric, Problem, Row
from trainmedic.kb.parse.logs.exports import ExportedColumns, exported_columns
from trainmedic.kb.parse.logs.metrics import NUMBER, is_outcome, makes_row, normalise, number
from trainmedic.kb.parse.source import LineIndex, Piece

HEAD_ROWS = TAIL_ROWS = 1000
NOTABLE_ROWS = 500
SAMPLED_ROWS = 1000

_MAX_METRICS = 300
_CONTINUED_LINES = 60
_BLANK_LINES = 4
_COLUMN = "  "
"""Two blanks keep the columns of a copied notebook table apart."""
_CUES = (
    "oss",
    "OSS",
    "grad",
    "Grad",
    "reward",
    "Reward",
    "kl",
    "KL",
    "log",
    "entropy",
    "perplexity",
    "ppl",
    "acc",
    "len",
)

_KEY = r"[A-Za-z_][\w/.()@-]{0,99}+"
_WRAP = r"(?:(?:(?:np|numpy|torch)\.)?(?:float(?:16|32|64)?|int(?:32|64)?|bfloat16|(?:DT|t)ensor)\([ '\"\[]{0,2}+)?"
_END = r"(?!\w|%|/|\.[0-9]|:[0-9])"
_PAIR = regex(
    rf"(?<![\w/.@:-])(?P<quote>['\"]?+)(?P<key>{_KEY})['\"]?+[ \t]{{0,40}}+(?P<sep>[:=：])[ \t]{{0,40}}+['\"]?+"
    rf"(?P<wrap>{_WRAP})(?P<number>{NUMBER}){_END}['\"]?+"
)
_WORDS = regex(  # "loss 0.58, grad_norm 0.160": a blank or a verb between, for the names that are no other word
    r"(?<![\w/.@-])(?P<key>(?i:(?:nll_|eval_|train_)?loss|grad[_ ]norm|learning_rate|lr|kl|(?:rewards|logps"
    r"|logits)/\w{1,20}+))"
    rf"(?=[ \t是为在])(?:[ \t]{{1,4}}(?:is|was|are|at|of)(?= )|[ \t]{{0,4}}[是为在])?[ \t]{{0,4}}+(?P<number>{NUMBER})"
    r"(?![\w%/]|\.[0-9])"
)
_LONE = regex(
    rf"^[\s>*•·|\-]{{0,40}}+['\"`]?+{_KEY}(?: [A-Za-z]{{1,20}}+){{0,2}}['\"`]?+[ \t]{{0,40}}+[:=：|][ \t]{{0,40}}+"
    rf"['\"]?+"
    rf"{_WRAP}{NUMBER}['\"\])]{{0,4}}+[\s,;|，；]{{0,40}}+$"
)
_TWO_COLUMNS = regex(  # "| grad_norm | nan |", and wandb's summary "wandb: train/loss 0.01"
    rf"^[\s>]{{0,20}}+(?:wandb:[ \t]{{1,60}}+|[|│┃][ \t]{{0,60}}+)(?P<key>{_KEY})[ \t]{{1,80}}+[|│┃]?[ \t]{{0,60}}+"
    rf"(?P<number>{NUMBER})[ \t]{{0,80}}+[|│┃]?[ \t]{{0,20}}+$"
)
_STRING_STEP = regex(r"""['"]global_step(?:/max_steps)?['"]\s{0,4}+:\s{0,4}+['"](?P<step>[0-9]{1,12}+)/""")
_BAR = regex(r"(?<![0-9.])(?P<step>[0-9]{1,12}+)/[0-9]{1,12}+ \[[0-9?]")
_BAR_ALONE = regex(  # the Trainer's bar: no title, and steps per second
    r"^[ \t]{0,8}+[0-9]{1,3}+%\|[^|\n]{0,200}+\|[ \t]{0,8}+(?P<step>[0-9]{1,12}+)/(?P<of>[0-9]{1,12}+)"
    r" \[[^\]\n]{1,80}(?:s/it|it/s)\][ \t]{0,8}+$"
)
_STEP_WORD = regex(
    r"(?:(?<![\w/])(?i:global[_ ]step|step|iteration|iter\(train\)|iter|rollout)s?+[ :=#\[]{1,8}+"
    r"|(?<![\w.|])[0-9]{1,6}+\|(?=[0-9]{1,12}\|))(?P<step>[0-9]{1,12}+)(?![\w.%])"  # torchtune: "epoch|step|Loss:"
)
_HEADING = regex(r"={5,} Step (?P<step>[0-9]{1,12}+)/[0-9]")
_MEGATRON = regex(
    r"(?<!\w)iteration\s{1,20}+(?P<step>[0-9]{1,12}+)(?:/\s{0,20}+[0-9]{1,12}+|(?: on (?:validation|test) set)?)"
    r"\s{0,4}+\|"
)
_MEGATRON_FIELD = regex(
    rf"(?P<key>[A-Za-z][A-Za-z0-9 ()_/-]{{0,60}}+):[ \t]{{0,20}}+(?P<number>{NUMBER})(?=\s{{0,20}}+(?:\||$))"
)
_VERL = regex(r"(?<!\w)step:[0-9]{1,12}+ - ")
_NAME_CELL = regex(r"^[A-Za-z_][\w/ .():-]{0,99}+$")
_NUMBER_CELL = regex(rf"^{NUMBER}$")
_NOISE = frozenset({"pid", "ip", "rank", "cuda", "local_rank", "port", "time", "device", "gpu", "node"})
_PROGRAMS = (".py", ".cpp", ".cc", ".cu")  # "trainer.py:123" in front of a row
_NEGATION = regex(r"\b(?i:no|not|never|without|isn't|aren't)\b|没|不是|无")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A row before spans are made: (name, value, start, end) per metric, offsets into the piece."""

    step: int | None
    cells: tuple[tuple[str, float, int, int], ...]
    style: str


def read(piece: Piece) -> tuple[tuple[Row, ...], tuple[Problem, ...]]:
    """The rows of a piece in order, and a problem ``rows_thinned`` if there were more than are kept.

    Kept of a very long log are the first `HEAD_ROWS`, the last `TAIL_ROWS`, up to twice `NOTABLE_ROWS` rows between
    them that are not finite or stand out, and `SAMPLED_ROWS` evenly spaced ones. The first row that is not finite
    always is.
    """
    light = list(_scan(piece.text, piece.source))
    kept = _thin(light)
    rows = tuple(_row(piece, one) for one in kept)
    problems = _other_runs(piece) if rows else ()
    if len(kept) == len(light):
        return rows, problems
    message = (
        f"{len(light)} logged rows; {len(kept)} are used: the first {HEAD_ROWS}, the last {TAIL_ROWS}, "
        "those that stand out, and an even sample of the rest"
    )
    return rows, (*problems, Problem(code="rows_thinned", message=message, span=piece.span(0, 0)))


def _other_runs(piece: Piece) -> tuple[Problem, ...]:
    """A problem if the piece is an exported table with columns of several runs."""
    end = piece.text.find("\n")
    columns = _exported(piece.text[:end], piece.source)
    if columns is None or len(columns.runs) < 2:
        return ()
    message = f"columns of {len(columns.runs)} runs; only those of {columns.runs[0]} are used"
    return (Problem(code="other_runs", message=message, span=piece.span(0, end)),)


def _row(piece: Piece, light: _Draft) -> Row:
    metrics: dict[str, Metric] = {}
    for name, value, start, end in light.cells:
        metrics[name] = Metric(name=name, value=value, span=piece.span(start, end))
    start = min(cell[2] for cell in light.cells)
    end = max(cell[3] for cell in light.cells)
    evaluation = any(name.startswith("eval_") for name in metrics) and "loss" not in metrics
    view: Mapping[str, Metric] = MappingProxyType(metrics)
    return Row(step=light.step, metrics=view, span=piece.span(start, end), style=light.style, evaluation=evaluation)


def _scan(text: str, source: str | None) -> Iterator[_Draft]:
    """Every row of a text, in order. One pass over the lines; only lines with a cue are looked at closely."""
    lines = text.split("\n")
    state_file = '"log_history"' in text
    exported = _exported(lines[0], source) is not None
    bars = _Bars(lines)
    starts = LineIndex(text).starts
    heading: int | None = None
    i = free = 0  # lines before `free` already belong to a row
    while i < len(lines):
        line = lines[i]
        if line.startswith("=====") and (stated := _HEADING.match(line)) is not None:
            heading = int(stated["step"])
        if not any(cue in line for cue in _CUES) and "{'" not in line and not (i == 0 and exported):
            i += 1
            continue
        table = _table(lines, starts, i, source) if any(mark in line for mark in ",\t;|") or _COLUMN in line else None
        if table is not None:
            found, i = table
            yield from found
        elif _TWO_COLUMNS.match(line):
            begin, i = _block_of(_TWO_COLUMNS, lines, i, free)
            yield from _two_columns(lines[begin:i], starts[begin:i])
        elif _LONE.match(line):
            begin, i = _block_of(_LONE, lines, i, free)
            for draft in _pairs(text, starts[begin], _end(starts, lines, i), state_file, lone=True):
                yield draft if draft.step is not None or heading is None else replace(draft, step=heading)
        else:
            begin, i = i, _closing(lines, i)
            logged = list(_line(text, starts[begin], _end(starts, lines, i), state_file))
            yield from bars.stepped(logged, begin)
        free = i


class _Bars:
    """The steps that the Trainer's progress bar counts on lines of its own.

    The Trainer moves its bar before it logs, so the bar on the line before a row has counted the row's step; the one
    that evaluation draws has another total, and its row is not a step of training.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.total: int | None = None
        self.step = 0

    def stepped(self, rows: list[_Draft], i: int) -> list[_Draft]:
        """The rows of line ``i``: a single Hugging Face one that states no step gets that of the bar before it."""
        if len(rows) != 1 or rows[0].style != "hf" or rows[0].step is not None:
            return rows
        names = {cell[0] for cell in rows[0].cells}
        bar = self._before(i) if "loss" in names else None
        if bar is None:
            return rows
        step, total = int(bar["step"]), int(bar["of"])
        if not self.step < step <= total or self.total not in (None, total):
            return rows
        self.step, self.total = step, total
        return [replace(rows[0], step=step)]

    def _before(self, i: int) -> re.Match[str] | None:
        """The bar on the last line before ``i`` that is not blank."""
        for line in reversed(self.lines[max(0, i - _BLANK_LINES) : i]):
            if line.strip():
                return _BAR_ALONE.match(line)
        return None


def _end(starts: list[int], lines: list[str], i: int) -> int:
    return starts[i - 1] + len(lines[i - 1])


def _block_of(pattern: re.Pattern[str], lines: list[str], i: int, free: int) -> tuple[int, int]:
    """The stretch of lines around line ``i``, one metric each, that match: [begin, end)."""
    begin = i
    while begin > max(free, i - _CONTINUED_LINES) and pattern.match(lines[begin - 1]):
        begin -= 1
    end = i + 1
    while end < len(lines) and end - begin < _MAX_METRICS and pattern.match(lines[end]):
        end += 1
    return begin, end


def _two_columns(lines: list[str], starts: list[int]) -> Iterator[_Draft]:
    """A row that is written downwards: one metric and its value a line."""
    matches = [(match, at) for line, at in zip(lines, starts, strict=True) if (match := _TWO_COLUMNS.match(line))]
    cells = _unique(
        tuple(
            (normalise(m["key"]), number(m["number"]), at + m.start("key"), at + m.end("number")) for m, at in matches
        )
    )
    if makes_row(cell[0] for cell in cells):
        yield _Draft(_step("", 0, 0, 0, None, cells), cells, "csv")


def _closing(lines: list[str], i: int) -> int:
    """The line after the dict that line ``i`` opens; ``i + 1`` if it opens none."""
    line = lines[i]
    opened = line.rfind("{")
    if opened < 0 or "}" in line[opened:] or _PAIR.search(line, opened) is None:
        return i + 1
    for j in range(i + 1, min(i + _CONTINUED_LINES, len(lines))):
        if "{" in lines[j]:
            break
        if "}" in lines[j]:
            return j + 1
        if _PAIR.search(lines[j]) is None:
            break
    return i + 1


def _line(text: str, start: int, end: int, state_file: bool) -> Iterator[_Draft]:
    megatron = _MEGATRON.search(text, start, end)
    if megatron is not None:
        cells = tuple(
            (normalise(field["key"]), number(field["number"]), field.start("key"), field.end())
            for field in _MEGATRON_FIELD.finditer(text, megatron.end(), end)
        )
        if makes_row(cell[0] for cell in cells):
            yield _Draft(int(megatron["step"]), _unique(cells), "megatron")
            return
    found = list(_pairs(text, start, end, state_file, lone=False))
    yield from found if found else _sentence(text, start, end)


def _sentence(text: str, start: int, end: int) -> Iterator[_Draft]:
    """Numbers in a sentence: ``loss 0.58, grad_norm 0.160``. A lone "loss nan" is left to the prose reader."""
    found = list(_WORDS.finditer(text, start, end))
    if not found or _NEGATION.search(text, start, found[-1].end()):
        return
    values = [number(match["number"]) for match in found]
    precise = [("." in m["number"] or "e" in m["number"].lower()) for m in found]
    if len(found) < 2 and not precise[0]:
        return
    cells = tuple(
        (normalise(match["key"]), value, match.start(), match.end()) for match, value in zip(found, values, strict=True)
    )
    if makes_row(cell[0] for cell in cells):
        yield _Draft(_step(text, start, found[0].start(), end, None), _unique(cells), "user")


def _pairs(text: str, start: int, end: int, state_file: bool, *, lone: bool) -> Iterator[_Draft]:
    """Rows of ``key: value`` pairs between two offsets. A closing brace, or a name that comes again in a list, ends
    one."""
    cells: list[tuple[str, float, int, int]] = []
    keys: set[str] = set()
    quotes, seps, begin, previous = 0, "", start, start
    for match in _PAIR.finditer(text, start, end):
        key = match["key"]
        cut = bool(cells) and (text.find("}", previous, match.start()) >= 0 or (lone and key in keys))
        if cut:
            yield from _finish(text, begin, match.start(), cells, quotes, seps, state_file)
            cells, keys, quotes, seps, begin = [], set(), 0, "", previous
        previous = match.end()
        if key.lower() in _NOISE or key.endswith(_PROGRAMS) or key in keys or len(cells) >= _MAX_METRICS:
            continue
        keys.add(key)
        quotes += bool(match["quote"])
        seps = match["sep"]
        cells.append((normalise(key), number(match["number"]), match.start(), _value_end(text, match, end)))
    if cells:
        yield from _finish(text, begin, end, cells, quotes, seps, state_file)


def _value_end(text: str, match: re.Match[str], end: int) -> int:
    """The end of a value, with the closing bracket of ``np.float64(…)`` or ``tensor(…, device='cuda:0')``."""
    if not match["wrap"]:
        return match.end()
    closing = text.find(")", match.end(), min(end, match.end() + 60))
    return closing + 1 if closing >= 0 else match.end()


def _finish(
    text: str, begin: int, end: int, cells: list[tuple[str, float, int, int]], quotes: int, sep: str, state_file: bool
) -> Iterator[_Draft]:
    if not makes_row(cell[0] for cell in cells):
        return
    unique = _unique(tuple(cells))
    bar = _last(_BAR, text, begin, min(end, cells[0][2]))
    style = "user"
    if state_file and quotes:
        style = "trainer_state"
    elif quotes:
        style = "jsonl" if text[cells[0][2]] == '"' else "hf"
    elif _VERL.search(text, begin, cells[0][3] + 3):
        style = "dashed"
    elif bar is not None and sep == "=":
        style = "postfix"
    yield _Draft(_step(text, begin, cells[0][2], end, bar, unique), unique, style)


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    """The last match in the 400 characters before ``end``: the bar that belongs to what follows."""
    found = list(pattern.finditer(text, max(start, end - 400), end))
    return found[-1] if found else None


def _step(
    text: str,
    begin: int,
    first: int,
    end: int,
    bar: re.Match[str] | None,
    cells: tuple[tuple[str, float, int, int], ...] = (),
) -> int | None:
    """The stated step: a metric ``step``, ``global_step/max_steps``, the progress bar, or "step 10" before the row."""
    for name, value, _, _ in cells:
        if name == "step" and 0 <= value < 1e15:
            return int(value)
    stated = _STRING_STEP.search(text, first, end) or bar or _last(_STEP_WORD, text, begin, first)
    return int(stated["step"]) if stated is not None else None


def _unique(cells: tuple[tuple[str, float, int, int], ...]) -> tuple[tuple[str, float, int, int], ...]:
    """The same cells, each name once: the first keeps it."""
    names: dict[str, tuple[str, float, int, int]] = {}
    for cell in cells:
        names.setdefault(cell[0], cell)
    return tuple(names.values())


def _split(line: str, delimiter: str) -> list[tuple[str, int, int]]:
    """The cells of one table line with their offsets in the line; quotes and blanks around a cell are not part of
    it."""
    cells, start = [], 0
    for part in line.split(delimiter):
        text = part.strip().strip("\"'").strip()
        at = start + (part.find(text) if text else 0)
        cells.append((text, at, at + len(text)))
        start += len(part) + len(delimiter)
    if delimiter == _COLUMN:
        cells = [cell for cell in cells if cell[0]]
    if delimiter == "|" and cells and not cells[0][0]:
        cells = cells[1:]
    if delimiter == "|" and cells and not cells[-1][0]:
        cells = cells[:-1]
    return cells


def _exported(line: str, source: str | None) -> ExportedColumns | None:
    return exported_columns([cell[0] for cell in _split(line, ",")], source) if "," in line[:200] else None


def _table(lines: list[str], starts: list[int], i: int, source: str | None) -> tuple[list[_Draft], int] | None:
    """The rows of the table whose header is line ``i``, and the line after it; None if there is no table."""
    if len(lines[i]) > 20_000:
        return None
    exported = None if i else _exported(lines[0], source)
    delimiter = next((mark for mark in ("\t", "|", ";", ",", _COLUMN) if mark in lines[i]), "")
    if exported is not None:
        names, known, delimiter = list(exported.names), list(exported.names), ","
    elif ":" in lines[i] or "=" in lines[i] or "{" in lines[i]:
        return None
    else:
        names = [cell[0] for cell in _split(lines[i], delimiter)]
        known = [normalise(name) for name in names]
    if len(names) < 2 or not all(_NAME_CELL.match(name) for name in names if name) or not makes_row(known):
        return None
    found: list[_Draft] = []
    j = i + 1
    while j < len(lines):
        line = lines[j]
        if not line.strip() or set(line) <= set("|-:+ \t"):
            if found and not line.strip():
                break
            j += 1
            continue
        cells = _split(line, delimiter) if delimiter in line else []
        values = [
            (name, *cell) for name, cell in zip(known, cells, strict=False) if name and _NUMBER_CELL.match(cell[0])
        ]
        logged = any(is_outcome(value[0]) for value in values)
        if len(cells) != len(names) or not (logged or exported):
            break
        if not logged:  # the row of another metric's or another run's step
            j += 1
            continue
        row = _unique(tuple((name, number(t), starts[j] + a, starts[j] + b) for name, t, a, b in values))
        found.append(_Draft(_step("", 0, 0, 0, None, row), row, "csv"))
        j += 1
    return (found, j) if found else None


def _thin(rows: list[_Draft]) -> list[_Draft]:
    """At most a few thousand rows, in order: head, tail, outliers and an even sample."""
    if len(rows) <= HEAD_ROWS + TAIL_ROWS + 2 * NOTABLE_ROWS + SAMPLED_ROWS:
        return rows
    middle = range(HEAD_ROWS, len(rows) - TAIL_ROWS)
    broken = [i for i in middle if not all(math.isfinite(value) for _, value, _, _ in rows[i].cells)]
    half = NOTABLE_ROWS // 2
    notable = set(broken[:half]) | set(broken[-half:]) | {i - 1 for i in broken[:1]}
    for name in ("grad_norm", "loss", "kl"):
        notable |= set(_largest(rows, middle, name, NOTABLE_ROWS // 4))
    stride = max(1, len(middle) // SAMPLED_ROWS)
    keep = notable | set(range(HEAD_ROWS)) | set(middle[::stride]) | set(range(len(rows) - TAIL_ROWS, len(rows)))
    return [rows[i] for i in sorted(keep)]


def _largest(rows: list[_Draft], middle: range, name: str, count: int) -> list[int]:
    sized = [(abs(value), i) for i in middle for cell, value, _, _ in rows[i].cells if cell == name and value == value]
    return [i for _, i in sorted(sized, reverse=True)[:count]]
