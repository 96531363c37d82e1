"""Starts ``doctor.pyz``: unpacks it once into the user's cache, because its tables are read as files."""

import os
import stat
import sys
import tempfile
import zipfile

NAME = "trainmedic-doctor-DIGEST"
TIME = 1577836800


def unpacked(archive: str, folder: str) -> str:
    """Unpack beside ``folder`` and rename, so that no other process sees a part."""
    if not os.path.isdir(folder):
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        part = tempfile.mkdtemp(dir=os.path.dirname(folder))
        with zipfile.ZipFile(archive) as file:
            file.extractall(part)
            for name in file.namelist():
                os.utime(os.path.join(part, name), (TIME, TIME))
        try:
            os.rename(part, folder)
        except OSError:  # another process was faster
            import shutil

            shutil.rmtree(part, ignore_errors=True)
    state = os.stat(folder)
    if hasattr(os, "getuid") and (state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise OSError("somebody else may write there")
    return folder


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 older ones are what may meet this file
        sys.exit("doctor.pyz needs Python 3.11 or newer, this is " + sys.version.split()[0])
    archive = os.path.dirname(os.path.abspath(__file__))
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    with tempfile.TemporaryDirectory() as own:
        try:
            folder = unpacked(archive, os.path.join(cache, NAME))
        except OSError:
            folder = unpacked(archive, os.path.join(own, "doctor"))
        sys.path.insert(0, folder)
        sys.argv[1:1] = ["doctor", "--quick"]
        from trainmedic.ui.cli import main as run

        return run()


if __name__ == "__main__":
    sys.exit(main())
