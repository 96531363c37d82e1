"""Where the files of the distribution trainmedic-data are: the default encoder, and the index of the shipped pages."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from trainmedic.kb.errors import StoreError


def encoder() -> Path:
    """The folder of the encoder. Raises `StoreError` if trainmedic-data is not installed."""
    return _folder("encoder")


def index() -> Path:
    """The folder of the index, which ``trainmedic index build --package`` makes. Raises as `encoder`."""
    return _folder("index")


def _folder(name: str) -> Path:
    try:
        package = files("trainmedic_data")
    except ModuleNotFoundError as error:
        raise StoreError(
            "the package trainmedic-data is not installed", hint="pip install 'trainmedic[serve]'"
        ) from error
    return Path(str(package)) / name
