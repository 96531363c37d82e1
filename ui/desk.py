"""The reviewer's desk over the knowledge of a team, for the command line."""

from __future__ import annotations

from pathlib import Path

from trainmedic.ingest.review.desk import Desk
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.pages.case import load_cases
from trainmedic.service.settings import Settings

DRAFTS = "drafts"
"""The folder of the drafts in the data folder."""


def drafts_folder(settings: Settings) -> Path:
    return settings.data_dir / DRAFTS


def load_desk(settings: Settings, drafts: Path | None = None, team: Path | None = None) -> Desk:
    """``team`` is the folder that pages are published to, by default the first of the settings."""
    named = (team, *settings.extra_pages) if team is not None else settings.extra_pages
    folders = tuple(dict.fromkeys(folder for folder in named if folder.exists()))
    target = next(iter(named), None)
    folder = drafts or drafts_folder(settings)
    return Desk(folder, load_cases(folders), vocabulary(), target)
