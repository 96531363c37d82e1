"""Tiny archives."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

CODE = {"tiny/__init__.py": b"", "tiny/config.py": b"class Config:\n    size: int = 256\n"}


def wheel(folder: Path, files: Mapping[str, bytes] = CODE, version: str = "1.0", name: str = "tiny") -> Path:
    return zipped(folder / f"{name}-{version}-py3-none-any.whl", files.items())


def zipped(path: Path, members: Iterable[tuple[str | ZipInfo, bytes]]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def sdist(folder: Path, files: Mapping[str, bytes], version: str = "1.0", name: str = "tiny") -> Path:
    top = f"{name}-{version}"
    return tarred(folder / f"{top}.tar.gz", [member(f"{top}/{path}", content) for path, content in files.items()])


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(content), kind, link
    return info, content


def tarred(path: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return path


def gzipped(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content))
    return path
