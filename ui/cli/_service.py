"""Options and set-up shared by the verbs that need the whole service."""

from __future__ import annotations

import argparse

from service.advisor import Advisor
from service.settings import Settings, load_settings


def settings_of(options: argparse.Namespace) -> Settings:
    """The effective settings: the verb's flags over environment and file."""
    flags = {name: getattr(options, name, None) for name in Settings.model_fields}
    if flags.get("language") == "auto":
        flags["language"] = None
    return load_settings(flags)


def advisor_of(options: argparse.Namespace, *, with_history: bool = False) -> Advisor:
    """An advisor for one call."""
    from ui.app import build_advisor

    return build_advisor(settings_of(options), with_history=with_history)
