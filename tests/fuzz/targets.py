"""What is fuzzed: each target takes any bytes and fails where a promise about them is broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from tests.parse.test_contract import FORMATS, READERS, read
from tests.test_mask import LOOKS, NOTATIONS, SHAPES
from tests.test_mask import NAMES as SECRET_NAMES
from trainmedic.ingest.items import Raw
from trainmedic.ingest.personal import hidden, hidden_markdown
from trainmedic.ingest.read.blocks import blocks
from trainmedic.kb.codec import codec_of
from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.logs import event_files
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.text import compressed
from trainmedic.ui.chat.markdown import message_html
from trainmedic.ui.present.slack_text import inert, split_markdown

Target = Callable[[bytes], None]
NAMES = ("", "a.yaml", "a.json", "a.toml", "a.ini", "a.py", "a.sh", "a.log", "a.txt", "a.ipynb", "a.csv", "pip.txt")
SECRET = SHAPES["huggingface_token"]


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _reader(name: str, data: bytes) -> None:
    read(name, text_of(data))


def _parse(data: bytes) -> None:
    """The first byte chooses between a question and a file of some name; two files where there is a form feed."""
    name, content = NAMES[data[0] % len(NAMES)] if data else "", data[1:]
    if not name:
        evidence = parse(text_of(content), ())
    else:
        parts = [Attachment(name=f"{n}{name}", content=part) for n, part in enumerate(content.split(b"\f")[:3])]
        evidence = parse("", tuple(parts))
    sent = codec_of(Evidence).encode(evidence)
    assert codec_of(Evidence).encode(codec_of(Evidence).decode(sent)) == sent
    sources = {source.name: source.text for source in evidence.sources}
    spans = [span for option in evidence.run.options for span in (option.span, option.key_span, option.value_span)]
    spans += [fact.span for fact in evidence.versions.values()] + [row.span for row in evidence.rows]
    for span in spans:
        if span is not None and span.attachment is not None and not span.default:
            lines = sources[span.attachment].split("\n")
            assert 1 <= span.line <= span.end_line <= len(lines), span
            assert 1 <= span.column <= len(lines[span.line - 1]) + 1, span


def _mask(data: bytes) -> None:
    text = text_of(data)
    once = mask(text)
    assert len(once.text) == len(text)
    assert once.text.count("\n") == text.count("\n")
    assert mask(once.text).text == once.text
    # A secret that stands free survives in no surroundings.
    assert SECRET not in mask(f"{text}\n{SECRET}\n{text}").text
    # Nor does the value of a name of one, wherever the two stand.
    chosen = sum(data[:8])
    pair = NOTATIONS[chosen % len(NOTATIONS)].format(name=SECRET_NAMES[chosen % len(SECRET_NAMES)], value=LOOKS)
    assert LOOKS not in mask(f"{text}\n\n{pair}\n{text}").text


def _personal(data: bytes) -> None:
    text = text_of(data)
    for hide in (hidden, hidden_markdown):
        assert "ann_other" not in hide(f"{text}\n/home/ann_other/run.log\n{text}")


def _compressed(data: bytes) -> None:
    expanded = compressed.expand(data)
    assert expanded is None or len(expanded.content) <= 64 * 1024 * 1024


def _events(data: bytes) -> None:
    event_files.read(data)


def _expression(data: bytes) -> None:
    with suppress(TrainmedicError):
        compile_expression(text_of(data), vocabulary())


def _html(data: bytes) -> None:
    blocks(Raw(origin="a.html", content=text_of(data), format="html"))


def _shown(data: bytes) -> None:
    text = text_of(data)
    html = str(message_html(text, "Copy")).lower()
    assert "<script" not in html
    assert 'href="javascript:' not in html
    assert "<!" not in inert(text)
    assert all(len(piece) <= 200 for piece in split_markdown(text, 200))


TARGETS: Mapping[str, Target] = {
    **{name: partial(_reader, name) for name in READERS},
    "parse": _parse,
    "mask": _mask,
    "personal": _personal,
    "compressed": _compressed,
    "events": _events,
    "expression": _expression,
    "html": _html,
    "shown": _shown,
}


def seeds(target: str) -> list[bytes]:
    """What a run begins with, besides the kept corpus."""
    formats = [FORMATS[target]] if target in FORMATS else list(FORMATS.values())
    return [text.encode() for values in formats for text in (values.get("whole", ""), *values["parts"]) if text]


def words(target: str) -> list[bytes]:
    """Pieces of syntax that mutations put in."""
    formats = [FORMATS[target]] if target in FORMATS else list(FORMATS.values())
    return sorted({part.encode() for values in formats for part in values["parts"]})
