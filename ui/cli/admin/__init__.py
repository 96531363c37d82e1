"""Administer a service: its keys, its audit log, its stored conversations."""

from __future__ import annotations

import argparse

from trainmedic.ui.cli import add_verb


def arguments(parser: argparse.ArgumentParser) -> None:
    from trainmedic.ui.cli.admin import history, key, log

    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for module in (history, key, log):
        add_verb(verbs, module.__name__.rpartition(".")[2], module)


def run(options: argparse.Namespace) -> int:
    raise AssertionError("one of the verbs runs instead")
