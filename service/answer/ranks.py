"""Report on the ranks of a run that hangs: where each stands, and the last words of the one to look at. Pure."""

from __future__ import annotations

import re
from itertools import takewhile

from trainmedic.kb.hang.table import table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.service.answer.citations import Citations, code, place, quote
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.passages import Sections, headed, plain
from trainmedic.service.ranking.features import Context

_TIMED_OUT = regex(r"(?i)watchdog|collective operation timeout|py-spy dump|Current thread 0x")
_ODD = regex(r"(?i)warn|error|skip|empty|except|fail|kill|nan\b|out of memory")


def sections(context: Context, citations: Citations) -> Sections:
    """Sections on the collective that each rank waits for, and on what the odd one said last."""
    language, shown = citations.language, table(context.facts.dumps).replace("`", "'")
    said = plain("ranks", *told) if (told := last_words(context, citations)) else ()
    return headed("ranks", (*plain("ranks", f"```\n{shown}\n```"), *said), language) if shown else said


def guilty(context: Context, citations: Citations) -> Sections:
    """The answer to the question which rank it is; empty if nothing shows it."""
    verdict, language = context.facts.verdict, citations.language
    if verdict is None or not verdict.odd:
        return ()
    finding = next((f for f in context.report.fired if f.rule_id.startswith("hang-")), None)
    marker = citations.rule(finding) if finding is not None else 0
    body = messages("asked.rank", language, ranks=", ".join(verdict.odd))
    body += f" {finding.message.get(language)} [{marker}]" if finding is not None else ""
    told = last_words(context, citations)
    return (*plain("reply", body, marker), *(plain("reply", *told) if told else ()))


def last_words(context: Context, citations: Citations) -> tuple[str, int] | None:
    """The last odd line of the rank to look at before the time-outs, cited."""
    verdict = context.facts.verdict
    if verdict is None or len(verdict.odd) != 1:
        return None
    span = _last(verdict.odd[0], context.evidence)
    if span is None:
        return None
    marker = citations.place(span)
    where = f"{place(span, citations.language)} {code(quote(span))} [{marker}]"
    return messages("ranks.last", citations.language, rank=verdict.odd[0], line=where), marker


def _last(rank: str, evidence: Evidence) -> Span | None:
    own = regex(rf"(?i)\brank\W{{0,3}}{re.escape(rank)}\b")
    for source in evidence.sources:
        before = takewhile(lambda line: not _TIMED_OUT.search(line[1]), enumerate(source.text.split("\n"), start=1))
        odd = [(number, line) for number, line in before if own.search(line) and _ODD.search(line)]
        if odd and source.name is not None:
            number, line = odd[-1]
            return Span(
                attachment=source.name, line=number, column=1, end_line=number, end_column=len(line) + 1, text=line
            )
    return None
