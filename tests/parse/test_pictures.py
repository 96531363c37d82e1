"""What a screenshot shows is read like pasted text, and every place in it says so; one that is not read is named."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.pictures import rendered, right
from tests.every_case import every_case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse import pipeline
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.text import pictures
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.request import Ask

TRACE = """Traceback (most recent call last):
  File "/opt/train.py", line 120, in <module>
    trainer.train()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.
{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.12}"""
HEIGHT, WIDTH = 22, 10
MADE_ANEW = pictures._engine.__wrapped__


class FakeReader:
    """Reads a picture whose lines are bars: the n-th from the top, as long as its text, is the n-th text."""

    def __init__(self, texts: Sequence[str], *, twice: bool = False, score: float = 0.9) -> None:
        self.texts = texts
        self.read = 0
        self.twice = twice
        self.score = score

    def picture(self) -> bytes:
        pixels = np.full((HEIGHT * len(self.texts), WIDTH * max(map(len, self.texts)), 3), 255, np.uint8)
        for number, text in enumerate(self.texts):
            begin = len(text) - len(text.lstrip())
            pixels[HEIGHT * number + 4 : HEIGHT * (number + 1) - 4, WIDTH * begin : WIDTH * len(text)] = 0
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG")
        return buffer.getvalue()

    def __call__(self, pixels: Any, *, use_det: bool, use_cls: bool, use_rec: bool) -> SimpleNamespace:
        if use_det:
            rows = [(HEIGHT * n + 1, HEIGHT * (n + 1) - 2) for n in range(len(self.texts))]
            rows += [(top + 11, end + 6) for top, end in rows] if self.twice else []
            boxes = [[(5 * WIDTH, top), (9 * WIDTH, top), (9 * WIDTH, end), (5 * WIDTH, end)] for top, end in rows]
            return SimpleNamespace(boxes=np.array(boxes, float))
        self.read += 1
        return SimpleNamespace(txts=(self.texts[self.read - 1].strip(),), scores=(self.score,))


def shown_by(monkeypatch: pytest.MonkeyPatch, *texts: str) -> bytes:
    return installed(monkeypatch, FakeReader(texts)).picture()


def installed(monkeypatch: pytest.MonkeyPatch, reader: FakeReader) -> FakeReader:
    monkeypatch.setattr(pictures, "_engine", MADE_ANEW)
    monkeypatch.setattr(pictures, "readable", lambda: True)
    monkeypatch.setitem(sys.modules, "rapidocr", SimpleNamespace(RapidOCR=lambda params: reader))
    return reader


def test_lines_are_read_whole_and_with_their_indentation(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("training_arguments:", "  fp16: true", "    - nested: 1.0", "ValueError: something is wrong")
    assert pictures.read(shown_by(monkeypatch, *texts)).text == "\n".join(texts) + "\n"


def test_a_line_that_is_found_twice_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = installed(monkeypatch, FakeReader(("first", "ValueError: of the second"), twice=True))
    assert pictures.read(reader.picture()).text == "first\nValueError: of the second\n"


@every_case(
    "reader",
    [FakeReader(("a guess",), score=0.1), FakeReader((" " * 9,))],
)
def test_nothing_is_said_to_be_shown_by_a_picture_without_writing(
    monkeypatch: pytest.MonkeyPatch, reader: FakeReader
) -> None:
    assert pictures.read(installed(monkeypatch, reader).picture()).text == ""


def test_a_picture_in_which_no_line_is_found_has_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    content = FakeReader(("a line",)).picture()
    installed(monkeypatch, FakeReader(()))
    assert pictures.read(content).text == ""


@every_case(
    ("read", "meant"),
    [
        ("learning_rate：le-05", "learning_rate: 1e-05"), ("  fp16:true", "  fp16: true"),
        ("ValueError:未找到模板", "ValueError: 未找到模板"), ("请检查：参数", "请检查：参数"),
        ("https://a.b/c", "https://a.b/c"), ("model.le-5", "model.le-5"),
    ],
)  # fmt: skip
def test_what_no_run_writes_is_corrected(read: str, meant: str) -> None:
    assert pictures._corrected(read) == meant


def test_each_place_in_a_picture_says_where_it_is_from(monkeypatch: pytest.MonkeyPatch, advisor: Advisor) -> None:
    file = Attachment(name="shot.png", content=shown_by(monkeypatch, *TRACE.split("\n")))
    answer = advisor.ask(Ask(question="why does it stop?", attachments=(file,)))
    assert {signal.evidence.attachment for signal in answer.signals} == {"shot.png (OCR)"}
    assert "shot.png:5:15 (read from a picture)" in answer.answer
    assert "shot.png: read from a picture, so some characters may be wrong" in answer.answer


@every_case(
    ("language", "says"), [("en", "a picture, **not read**. Paste its text"), ("zh", "图片，**未读取**。请改贴文字")]
)
def test_a_picture_that_cannot_be_read_is_named_with_what_to_paste(
    monkeypatch: pytest.MonkeyPatch, advisor: Advisor, language: Any, says: str
) -> None:
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    file = Attachment(name="shot.png", content=rendered("loss is nan", dark=True))
    answer = advisor.ask(Ask(question="DPO loss is nan from the first step", attachments=(file,), language=language))
    assert says in answer.answer
    assert (answer.receipt.inputs[1].kind, answer.receipt.inputs[1].read) == ("picture", False)


@every_case("spoilt", ["large", "cut", "many"])
def test_a_hostile_picture_is_refused_before_it_is_decoded(spoilt: str) -> None:
    picture = bytearray(rendered("loss is nan", dark=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "readable", lambda: True)
        if spoilt == "large":
            patch.setattr(pictures, "MOST_PIXELS", 100)
        elif spoilt == "many":
            patch.setattr(pictures, "MOST_BYTES", 100)
        else:
            del picture[60:]
        (problem,) = parse("", (Attachment(name="a.png", content=bytes(picture)),)).receipt.problems
    assert problem.code == "picture"


def test_lines_that_are_too_many_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    content = shown_by(monkeypatch, "first line", "second line", "third line")
    monkeypatch.setattr(pipeline, "MOST_WRITING", pictures.FINDING)
    receipt = parse("", (Attachment(name="a.png", content=content),)).receipt
    assert ["3 of its lines are too many" in problem.message for problem in receipt.problems] == [True]


def test_no_more_is_read_from_all_pictures_of_a_message_than_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    content = shown_by(monkeypatch, "first line", "second line")
    monkeypatch.setattr(pipeline, "MOST_WRITING", pictures.FINDING + 50)
    files = tuple(Attachment(name=f"{n}.png", content=content) for n in range(2))
    assert [item.read for item in parse("", files).receipt.inputs[1:]] == [True, False]


@every_case("dark", [True, False])
def test_a_rendered_traceback_is_read(dark: bool) -> None:
    pytest.importorskip("rapidocr")
    assert right(TRACE, pictures.read(rendered(TRACE, dark=dark)).text) > 0.97


@every_case("form", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
def test_a_picture_is_told_by_its_beginning(form: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, form)
    assert pictures.is_picture(buffer.getvalue())


@every_case("line", ["BM25 index built", "RIFF chunks read: 12", "GIF8 frames"])
def test_a_text_that_begins_with_the_letters_of_a_picture_is_none(line: str) -> None:
    assert not pictures.is_picture(line.encode())
