"""The text of a PDF is read; one that has none, or is damaged, is named."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tests.every_case import every_case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.text import opening

LINES = ("ValueError: pad_token is not set", "learning_rate: 1e-05")


def pdf(*lines: str) -> bytes:
    shown = " ".join(f"1 0 0 1 20 {700 - 20 * n} Tm ({line}) Tj" for n, line in enumerate(lines)).encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
        b" /Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Courier >> >> >> >>",
        b"<< /Length %d >>\nstream\nBT /F 12 Tf %s ET\nendstream" % (len(shown) + 14, shown),
    )
    content, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return content + (
        b"xref\n0 5\n0000000000 65535 f \n%strailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (table, len(content))
    )


def test_the_text_of_its_pages_is_read() -> None:
    pytest.importorskip("pypdf")
    evidence = parse("", (Attachment(name="report.pdf", content=pdf(*LINES)),))
    assert evidence.receipt.inputs[1].note == "PDF, pages read: 1"
    (trace,) = evidence.tracebacks
    assert (trace.exception, trace.span.attachment, trace.span.line) == ("ValueError", "report.pdf", 1)


def test_one_that_has_no_text_or_is_damaged_is_named() -> None:
    pytest.importorskip("pypdf")
    for content in (pdf(), pdf(*LINES)[:60]):
        receipt = parse("", (Attachment(name="report.pdf", content=content),)).receipt
        assert (receipt.inputs[1].kind, receipt.inputs[1].read) == ("pdf", False)
        assert {problem.code for problem in receipt.problems} == {"pdf"}


class FakePage:
    def __init__(self, text: str) -> None:
        self.text = text

    def extract_text(self) -> str:
        if self.text == "damaged":
            raise KeyError(self.text)
        return self.text


@every_case(
    ("pages", "size", "read", "says"),
    [
        (["ValueError: x", "second page"], 9, True, ""),
        (["page"] * 41, 9, True, "not read as a whole: 40 of its 41 pages"),
        ([" ", ""], 9, False, "is a PDF without text"),
        (["page", "damaged"], 9, False, "cannot be read: KeyError"),
        (["page"], opening.LARGEST_PDF + 1, False, "cannot be read: ValueError"),
    ],
)
def test_what_is_not_read_of_a_pdf_is_said(
    monkeypatch: pytest.MonkeyPatch, pages: list[str], size: int, read: bool, says: str
) -> None:
    reader = SimpleNamespace(PdfReader=lambda _: SimpleNamespace(pages=list(map(FakePage, pages))))
    monkeypatch.setitem(sys.modules, "pypdf", reader)
    monkeypatch.setattr(opening, "find_spec", lambda _: True)
    file = opening.opened("report.pdf", b"%PDF-1.4".ljust(size), 0, 0)
    assert file.content == ("\n".join(pages[:40]) if read else b"")
    assert says in "".join(problem.message for problem in file.problems)
    assert bool(file.problems) == bool(says)


def test_without_its_package_a_pdf_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda _: None)
    (problem,) = parse("", (Attachment(name="report.pdf", content=pdf(*LINES)),)).receipt.problems
    assert "pip install 'trainmedic[pictures]'" in problem.message
