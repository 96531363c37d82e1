"""Option catalogues from the frameworks' own sources, read statically: nothing of a framework is ever imported or run.

``python -m trainmedic.ingest.tools.extract --checkout DIR --framework openrlhf --tag v0.8.11`` reads one release from a
git checkout (bare or not, shallow is enough) and adds it to that framework's file. ``--wheel FILE`` instead of checkout
and tag reads it from a package. ``--compare`` only reports how it differs from what is stored.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainmedic.ingest.tools.extract_source import GitTree, WheelTree
from trainmedic.ingest.tools.extract_store import Book, Entry, read, write
from trainmedic.ingest.tools.option_sources import FRAMEWORKS, extract, with_options_of
from trainmedic.kb.versions import bare

DATA = Path(__file__).resolve().parents[2] / "kb" / "frameworks"


def add_release(tree: GitTree, framework: str, folder: Path, also: tuple[str, GitTree] | None = None) -> Path:
    """Extract one release and merge it into the framework's file (created if absent).

    ``also``: a framework whose options this one takes besides its own, and its tree.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / framework / "options.json"
    book = read(path) if path.exists() else Book(framework=framework)
    entries = extract(tree, framework)
    if also is not None:
        entries = with_options_of(entries, also[1], also[0])
    book.add(release_of(tree.tag), entries)
    return write(book, folder)


def release_of(tag: str) -> str:
    """The version in a tag, which may name the project as well: ``core_v0.12.0``, ``skyrl_train-v0.3.0``."""
    first_digit = next((place for place, character in enumerate(tag) if character.isdigit()), 0)
    return bare(tag[first_digit:])


def differences(stored: Mapping[str, Entry], found: Mapping[str, Entry]) -> list[str]:
    """One line for each option that differs: ``-`` only stored, ``+`` only found, ``~`` not the same in both."""
    lines = [f"- {name}" for name in sorted(stored.keys() - found.keys())]
    lines += [f"+ {name}" for name in sorted(found.keys() - stored.keys())]
    for name in sorted(stored.keys() & found.keys()):
        for part in ("type", "default", "choices", "nargs", "action", "default_by"):
            old, new = stored[name].get(part), found[name].get(part)
            if old != new:
                lines.append(f"~ {name} {part}: {old!r} -> {new!r}")
        if set(stored[name]["in"]) != set(found[name]["in"]):
            lines.append(f"~ {name} in: {stored[name]['in']} -> {found[name]['in']}")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when it wrote or compared, 2 on misuse."""
    parser = argparse.ArgumentParser(prog="python -m trainmedic.ingest.tools.extract", description=__doc__)
    parser.add_argument("--checkout", type=Path, help="a git checkout or git directory of the framework")
    parser.add_argument("--wheel", type=Path, help="a wheel of the framework, instead of a checkout and a tag")
    parser.add_argument("--framework", choices=sorted(FRAMEWORKS), required=True)
    parser.add_argument("--tag", help="the release tag to read")
    parser.add_argument(
        "--also", nargs=3, metavar=("FRAMEWORK", "DIR", "TAG"), help="a framework whose options it takes as well"
    )
    parser.add_argument(
        "--submodule",
        nargs=2,
        metavar=("PATH", "DIR"),
        help="a submodule of the checkout, and a repository with its commit",
    )
    parser.add_argument("--compare", action="store_true", help="report the differences, write nothing")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the catalogue files")
    args = parser.parse_args(argv)
    if not (args.wheel or (args.checkout and args.tag)):
        parser.error("give --checkout and --tag, or --wheel")
    inner = {args.submodule[0]: Path(args.submodule[1])} if args.submodule else None
    tree = WheelTree(args.wheel) if args.wheel else GitTree(args.checkout, args.tag, inner)
    if args.compare:
        stored = read(args.data / args.framework / "options.json").releases.get(release_of(tree.tag), {})
        found = extract(tree, args.framework)
        lines = differences(stored, found)
        sys.stdout.write(f"{len(stored)} stored, {len(found)} found, {len(lines)} differences\n")
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    else:
        also = (args.also[0], GitTree(Path(args.also[1]), args.also[2])) if args.also else None
        sys.stdout.write(f"{add_release(tree, args.framework, args.data, also).name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
