"""Open questions in stored conversations, for the curator of a team's knowledge, and the deletion of one.

unresolved  questions that nothing explained, that were not answered, or whose answer was voted down, the latest first
delete ID   delete a conversation with its answers, feedback and copies, whoever asked; ID is its id or an answer's

Only masked text is stored, and only for `history_days`.
"""

from __future__ import annotations

import argparse
import sys

LONGEST = 100
"""Code points of a question on one line."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("unresolved", "delete"))
    parser.add_argument("id", nargs="?", help="id of the conversation to delete")
    parser.add_argument("--top", type=int, default=20, metavar="N", help="number to list (20)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.serialization import to_json
    from trainmedic.service.storage.history import History
    from trainmedic.service.storage.memory import Memory
    from trainmedic.ui.app import database_of
    from trainmedic.ui.cli._service import open_journal, settings_of

    if (options.what == "delete") != (options.id is not None):
        raise InvalidRequest("delete takes the id of a conversation or an answer, unresolved takes none")
    history = History(database_of(settings_of(options)))
    if options.what == "delete":
        stored, note = history.stored_answer(options.id), open_journal(options)
        conversation = str(stored.answer["conversation_id"]) if stored else options.id
        Memory(history).delete_conversation(conversation, None)
        note("history delete", conversation)
        print("deleted", file=sys.stderr)
        return 0
    questions = history.unresolved()[::-1][: options.top]
    if options.json:
        sys.stdout.write(to_json(questions, indent=2) + "\n")
    else:
        for question in questions:
            print(f"{question.asked_at.date()}  {question.reason:10}  {_line(question.question)}")
    if not questions:
        print("nothing yet", file=sys.stderr)
    return 0


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
