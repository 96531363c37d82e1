"""Decoding, bounds and positions."""

from __future__ import annotations

import itertools
import time
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.parse.source import Limits, LineIndex, Piece
from trainmedic.kb.parse.text.condense import Room, condense
from trainmedic.kb.parse.text.intake import Loaded, decode, load

SMALL = Limits(room=Room(head=40, between=200, tail=40))
NORMAL = Limits()


def text_of(content: str | bytes, limits: Limits = NORMAL) -> str:
    return load("a.log", content, limits, limits.total).source.text


@every_case("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030"])
def test_the_usual_encodings_are_recognised(encoding: str) -> None:
    text = "loss 变成 nan\nlearning_rate: 1e-6 and more plain text\n" * 4
    decoded = decode(text.encode(encoding))
    assert decoded is not None
    assert decoded[0] == text


def test_a_character_cut_at_the_end_costs_only_itself() -> None:
    assert decode("loss 变".encode()[:-1]) == ("loss ", "utf-8")


def test_a_few_bad_bytes_are_replaced() -> None:
    decoded = decode(b"a long enough line of text \xff\xfe\xff and more of it\n" * 3)
    assert decoded is not None
    assert "long enough" in decoded[0]


@every_case(
    "content",
    [
        b"\x7fELF\x02\x01",
        b"PK\x03\x04" + b" " * 26 + b"[Content_Types].xml",
        bytes(range(256)) * 8,
        b"\xff\x01\x80\x81" * 40,
        b"loss: 1\x00lr" * 50,
    ],
)
def test_binary_content_is_not_read(content: bytes) -> None:
    loaded = load("model.bin", content, Limits(), 10_000_000)
    assert not loaded.read
    assert loaded.source.text == ""
    assert [problem.code for problem in loaded.problems] == ["binary"]


def test_a_stray_nul_is_a_blank() -> None:
    assert text_of(b"loss: 1\x00 and then a lot of other text" + b" x" * 100).startswith("loss: 1  and")


@every_case(
    ("written", "shown"),
    [
        ("\x1b[36m(A pid=1)\x1b[0m 'loss': \x1b[1;31mnan\x1b[0m", "(A pid=1) 'loss': nan"),
        ("\x1b[A\x1b[2K 5/50\x1b[K", " 5/50"), ("\x1b]8;;https://a.b\x1b\\link\x1b]8;;\x07 end", "link end"),
        ("\x1b(B\x1b=a", "a"), ("[1m [0, 36] a[0m]", "[1m [0, 36] a[0m]"), ("\x1b[\nnext", "\x1b[\nnext"),
    ],
)  # fmt: skip
def test_what_a_terminal_shows_nothing_of_is_left_out(written: str, shown: str) -> None:
    assert text_of(written) == shown
    assert text_of(written.encode()) == shown


def test_colours_do_not_hide_a_secret() -> None:
    assert "abcdefghij" not in text_of("HF_TOKEN=hf_\x1b[1mabcdefghijabcdefghijabcdefghijabcd\x1b[0m")


def test_line_breaks_are_normalised_and_line_numbers_stay() -> None:
    loaded = load(None, "a\r\nb\rc\nd", Limits(), 1000)
    assert loaded.source.text == "a\nb\nc\nd"
    assert loaded.lines == 4


def test_a_lone_surrogate_and_a_byte_order_mark_do_no_harm() -> None:
    assert text_of("\ufeffa\ud800b") == "a\ufffdb"


@every_case("end", ["\n", "\r\n", "\r"])
def test_a_long_log_keeps_head_tail_and_what_is_unlike_the_rest_at_their_own_lines(end: str) -> None:
    content = "".join(f"ValueError: x{end}" if n == 500 else f"line {n}{end}" for n in range(1, 1001))
    loaded = load("a.log", content, SMALL, 10_000)
    lines = loaded.source.text.split("\n")
    assert (lines[0], lines[499], lines[999], lines[700]) == ("line 1", "ValueError: x", "line 1000", "")
    place = loaded.piece.text.index("ValueError")
    assert loaded.piece.position(place) == (500, 1)
    assert loaded.piece.cut(place, len(loaded.piece.text)).span(0, 5).line == 500
    assert loaded.lines == 1000
    assert loaded.note.startswith("all 1000 lines were read; ")
    assert not loaded.source.truncated


def test_blank_lines_take_no_room_of_the_head() -> None:
    content = "line 1\n" + "\n" * 60 + "".join(f"line {n}\n" for n in range(2, 40))
    lines = text_of(content, Limits(room=Room(head=20, between=0, tail=10))).split("\n")
    assert (lines[61], lines[63], lines[98]) == ("line 2", "", "line 39")


def test_of_a_loss_that_was_not_finite_for_long_the_first_and_the_last_row_are_kept() -> None:
    rows = [f"{{'loss': {'nan' if 2_000 <= n <= 5_000 else 0.5}, 'n': {n}}}" for n in range(1, 8_001)]
    lines = text_of("\n".join(rows), Limits(room=Room(head=100, between=4_000, tail=100))).split("\n")
    assert (lines[1_999], lines[4_999]) == (rows[1_999], rows[4_999])
    assert sum("nan" in line for line in lines) < 100


@every_case(("opens", "closes", "whole"), [("{", "},", True), ("(", "),", False)])
def test_of_an_object_with_a_line_for_each_value_all_are_kept(opens: str, closes: str, whole: bool) -> None:
    def object_(n: int) -> str:
        return f'{opens}\n"epoch": {n},\n"a": 1,\n"loss": {9 if n == 500 else 1}.5,\n"b": 1,\n"step": {n}\n{closes}'

    text = text_of("\n".join(map(object_, range(1_000))), Limits(room=Room(head=100, between=2_000, tail=100)))
    assert '\n"a": 1,\n"loss": 9.5,\n"b": 1,\n' in text
    assert ('"epoch": 500' in text, '"step": 500' in text) == (whole, whole)


@every_case(("content", "kept"), [("x" * 500, "x" * 40), (b"x" * 500, "x" * 40), ("变" * 500, "变" * 13)])
def test_of_one_giant_line_only_the_head_is_kept(content: str | bytes, kept: str) -> None:
    loaded = load("a.json", content, SMALL, 10_000)
    assert loaded.source.text.rstrip() == kept
    assert loaded.source.truncated


def test_a_long_utf16_log_is_not_cut_inside_a_character() -> None:
    content = "".join(f"行 {n}\n" for n in range(1000)).encode("utf-16")
    assert "\ufffd" not in text_of(content, SMALL)


def test_nothing_is_left_of_an_input_when_the_budget_is_spent() -> None:
    loaded = load("a.log", "a\nb\n", Limits(), 0)
    assert not loaded.source.text.strip()
    assert loaded.source.truncated


def test_fifty_megabytes_are_read_in_time_that_grows_as_their_size() -> None:
    def read(lines: int) -> tuple[Loaded, float]:
        content = b"{'loss': 0.5, 'grad_norm': 1.0}\n" * lines
        began = time.thread_time()
        return load("train.log", content, Limits(), Limits().total), time.thread_time() - began

    _, quarter = read(400_000)
    loaded, whole = read(1_600_000)
    assert whole < 8 * quarter
    assert len(loaded.piece.text) < 2_000_000
    assert loaded.lines == 1_600_000


def test_secrets_are_masked_before_anything_else() -> None:
    loaded = load(None, "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n", Limits(), 1000)
    assert "abcdefghijklmnop" not in loaded.source.text
    assert loaded.masked


def test_a_piece_gives_positions_of_the_whole_text() -> None:
    piece = Piece(source="x", text="ab\n  cd\nef")
    inner = piece.cut(5, 10)
    assert inner.text == "cd\nef"
    span = inner.span(3, 5)
    assert (span.line, span.column, span.end_line, span.end_column, span.text) == (3, 1, 3, 3, "ef")


def test_stripped_prefixes_stay_in_positions_and_in_the_text_of_spans() -> None:
    piece = Piece(source=None, text="a\nb\nc", column=3, prefixes=("> ", "> ", "> "))
    span = piece.span(0, 3)
    assert span.text == "a\n> b"
    assert (span.column, span.end_column) == (3, 4)
    assert piece.cut(2, 5).span(0, 3).text == "b\n> c"


@given(st.text(alphabet="ab\n", max_size=60), st.integers(0, 70), st.integers(0, 70))
def test_positions_agree_with_counting(text: str, start: int, end: int) -> None:
    span = Piece(source=None, text=text).span(start, end)
    lines = text.split("\n")
    begin = sum(len(line) + 1 for line in lines[: span.line - 1]) + span.column - 1
    stop = sum(len(line) + 1 for line in lines[: span.end_line - 1]) + span.end_column - 1
    assert text[begin:stop] == span.text
    assert LineIndex(text).position(begin) == (span.line, span.column)


@given(st.binary(max_size=300))
def test_any_bytes_can_arrive(content: bytes) -> None:
    loaded = load("x", content, SMALL, 1000)
    assert "\r" not in loaded.source.text


@given(st.text(max_size=300), st.integers(0, 100))
def test_any_text_can_arrive(content: str, budget: int) -> None:
    loaded = load(None, content, SMALL, budget)
    loaded.source.text.encode()


def test_lines_and_columns_count_from_one() -> None:
    index = LineIndex("ab\n\n学习 c")
    assert [index.position(offset) for offset in (0, 2, 3, 4, 7)] == [(1, 1), (1, 3), (2, 1), (3, 1), (3, 4)]


def test_no_line_of_a_private_key_is_kept_without_its_neighbours() -> None:
    key = "".join(f"{'AbCdEfGh' * 7}{n:08d}\n" for n in range(20))
    text = "".join(f"line {n}\n" for n in range(400)) + key + "".join(f"line {n}\n" for n in range(400))
    assert "AbCdEfGh" not in text_of(text, Limits(room=Room(head=100, between=2_000, tail=100)))


def test_memory_does_not_grow_with_lines_that_are_all_short_and_different() -> None:
    words = ("".join(letters) for letters in itertools.product("abcdfghijk", repeat=5))
    blocks = ("\n".join(itertools.islice(words, 10_000)).encode() + b"\n" for _ in range(10))
    tracemalloc.start()
    condense(blocks, Room(head=1_000, between=400_000, tail=1_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000
