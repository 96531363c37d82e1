"""The text of a PDF is read; one that has none, or is damaged, is named."""

from __future__ import annotations

import pytest

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


def test_without_its_package_a_pdf_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda _: None)
    (problem,) = parse("", (Attachment(name="report.pdf", content=pdf(*LINES)),)).receipt.problems
    assert "pip install 'trainmedic[pictures]'" in problem.message
