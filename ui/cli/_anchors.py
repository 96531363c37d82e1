"""``trainmedic kb anchors``: what of the pages rests on source that is read again at every release."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainmedic.ui.cli._input import folders_of

if TYPE_CHECKING:
    from trainmedic.ingest.authoring.anchored import Claim
    from trainmedic.ingest.update.anchors import Spots
    from trainmedic.kb.pages.anchor import Anchor


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("page", nargs="*", type=Path, metavar="PAGE", help="pages or folders of pages (all)")
    parser.add_argument("--json", action="store_true", help="print JSON, including anchored claims")
    parser.add_argument("--check", action="store_true", help="read the anchored source again in current releases")
    clones = "a folder with git clones of packages, whose tags are read; for others their package index"
    parser.add_argument("--checkouts", type=Path, metavar="FOLDER", help=clones)


def run(options: argparse.Namespace) -> int:
    from trainmedic.ingest.authoring.anchored import Claims
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.pages.case import CAUSES, is_cause
    from trainmedic.kb.pages.page import discover
    from trainmedic.kb.serialization import to_json

    for path in options.page:
        if not path.exists():
            raise InvalidRequest(f"{path} does not exist")
    roots = options.page or (CAUSES, *folders_of(()))
    found = [(path, name) for root in roots for path, name in discover(root) if is_cause(path.read_bytes())]
    pages = [Claims(path, name) for path, name in found]
    if options.check:
        return _check([anchor for page in pages for anchor in page.anchors], _spots(options))
    claims = [claim for page in pages for claim in page.all()]
    sys.stdout.write(to_json(claims) + "\n" if options.json else _shown(claims))
    return 0


def _spots(options: argparse.Namespace) -> Spots:
    from trainmedic.ingest.update.anchors import Spots, checkouts_in
    from trainmedic.ingest.update.releases import Published
    from trainmedic.ui.releases import sources_here

    return Spots(Published(sources_here(), checkouts_in(options.checkouts) if options.checkouts else ()))


def _check(anchors: Sequence[Anchor], spots: Spots) -> int:
    from trainmedic.ingest.update.anchors import problems

    broken = unread = 0
    for anchor, why, is_read in problems(spots, anchors):
        broken, unread = broken + is_read, unread + (not is_read)
        sys.stdout.write(f"{anchor.page}:{anchor.line}: {'' if is_read else 'not read: '}{why}\n")
    print(f"{len(anchors)} anchors, {broken} do not hold, {unread} not read", file=sys.stderr)
    return 1 if broken else 0


def _shown(claims: Sequence[Claim]) -> str:
    lines = [f"{each.page}:{each.line}: {each.kind}: {each.what}" for each in claims if not each.by]
    for kind in dict.fromkeys(each.kind for each in claims):
        counts = Counter(each.by for each in claims if each.kind == kind)
        there = counts.total() - counts.pop("", 0)
        total = sum(each.kind == kind for each in claims)
        by = ", ".join(f"{count} by {name}" for name, count in sorted(counts.items()))
        lines.append(f"{kind}s: {there} of {total} anchored ({there / total:.0%}){f': {by}' if by else ''}")
    return "".join(f"{line}\n" for line in lines)
