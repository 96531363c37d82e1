"""Hazards of reading an untrusted archive."""

from __future__ import annotations

from functools import cache


@cache
def damage() -> tuple[type[Exception], ...]:
    """Exceptions from reading a zip or tar that it is damaged, encrypted, hostile or packed in an unknown way."""
    import tarfile  # these take longer to load than a check to read most files, and few inputs are archives
    import zipfile
    import zlib
    from lzma import LZMAError

    return (
        *(zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, OSError),
        *(ValueError, LookupError, RuntimeError),
    )
