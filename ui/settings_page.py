"""Write the table of docs/run/settings.md from the settings: ``python -m trainmedic.ui.settings_page``."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from trainmedic.service.configuration import known_settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "run" / "settings.md"
BEGIN, END = "<!-- begin: generated from the settings -->\n", "<!-- end -->\n"


def page(text: str) -> str:
    """The page with the current table between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = ["| setting | default | is |", "|---|---|---|"]
    for name, setting in known_settings().items():
        rows.append(f"| `{name}` | {default(setting.field)} | {setting.field.description} |")
    return before + BEGIN + "\n".join(rows) + "\n" + END + after


def default(field: FieldInfo) -> str:
    """The default as a cell; empty if there is none or the description states it."""
    value = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    if isinstance(value, bool):
        return str(value).lower()
    if field.default_factory is not None or value == "":
        return ""
    return f"`{value}`" if isinstance(value, str) else f"{value:g}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
