"""What the stored conversations tell the curator of a team's knowledge, and the deletion of one.

unresolved  questions that nothing explained, that were not answered, or whose answer was voted down; those alike as one
seen        how often each cause came first, and when last
delete ID   delete a conversation with its answers, feedback and copies, whoever asked; ID is its id or an answer's

Only masked text is stored, and only for `history_days`.
"""

from __future__ import annotations

import argparse
import sys

WHAT = ("unresolved", "seen", "delete")
LONGEST = 100
"""Code points of a question on one line."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("id", nargs="?", help="of the conversation to delete")
    parser.add_argument("--top", type=int, default=20, metavar="N", help="how many are listed (20)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.errors import InvalidRequest, InvalidSettings
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.cli._service import advisor_of, open_journal

    advisor = advisor_of(options, with_history=True)
    memory = advisor.memory
    history = memory.history
    if history is None:
        raise InvalidSettings("no history is kept", hint="set TRAINMEDIC_HISTORY_DAYS")
    if (options.what == "delete") != (options.id is not None):
        raise InvalidRequest("delete takes the id of a conversation or an answer, the others take none")
    if options.what == "delete":
        stored, note = memory.answer(options.id), open_journal(options)
        conversation = str(stored.answer["conversation_id"]) if stored else options.id
        memory.delete_conversation(conversation, None)
        note("history delete", conversation)
        print("deleted", file=sys.stderr)
        return 0
    if options.what == "unresolved":
        clusters = memory.unresolved(advisor.knowledge.embedder.vectors, advisor.nearest)[: options.top]
        lines = [
            f"{view.count:4}  {view.last}  {view.reason:10}  {_line(view.question)}"
            + (f"  (nearest: {view.nearest})" if view.nearest else "")
            for view in clusters
        ]
        listed: object = clusters
    else:
        seen = memory.seen(advisor.knowledge, "zh" if options.language == "zh" else "en")[: options.top]
        lines = [f"{view.count:4}  {view.last}  {view.id}  {view.title}" for view in seen]
        listed = seen
    sys.stdout.write(to_json(listed, indent=2) + "\n" if options.json else "".join(f"{line}\n" for line in lines))
    if not lines:
        print("nothing yet", file=sys.stderr)
    return 0


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
