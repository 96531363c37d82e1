"""The collected files as an archive to send: texts only, masked, with a manifest of what was read."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping

from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.logs import event_files
from trainmedic.kb.parse.text.compressed import expand
from trainmedic.kb.parse.text.intake import decode
from trainmedic.ui.doctor.collect import Collected

MANIFEST = "manifest.json"
FORMAT = "trainmedic-bundle-1"
_DATE = (1980, 1, 1, 0, 0, 0)


def bundle_of(collected: Collected) -> bytes:
    """The archive. What is not text is named in its manifest alone."""
    counts: dict[str, int] = {}
    files, texts = [], {}
    for found in collected.found:
        attachment = found.attachment
        name = mask(attachment.name.lstrip("/")).text
        text = _text(attachment)
        files.append({"name": name, "role": found.role, "bytes": len(attachment.content), "included": text is not None})
        if text is not None:
            masked = mask(text)
            texts[name] = masked.text
            for kind, count in masked.counts.items():
                counts[kind] = counts.get(kind, 0) + count
    manifest = {
        "format": FORMAT,
        "of": [collected.target.words[0], mask(collected.target.words[1]).text],
        "files": files,
        "masked": dict(sorted(counts.items())),
        "not_found": list(collected.missing),
        "not_readable": [mask(name).text for name in collected.unread],
        "links_not_followed": collected.links,
        "cut_short": collected.cut_short,
    }
    return _archive({MANIFEST: json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", **texts})


def _archive(texts: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), text.encode("utf-8", "replace"), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _text(attachment: Attachment) -> str | None:
    """An attachment's text: unpacked, a tracker's history as lines; None for what else is binary."""
    content = attachment.content
    if isinstance(content, str):
        return content
    if (expanded := expand(content)) is not None:
        content = expanded.content
    if (history := event_files.read(content)) is not None:
        return history.text
    decoded = decode(content)
    return decoded[0] if decoded is not None else None
