"""Facts in what a user writes, in English, Chinese or both: versions, names, and signals he states.

A stated signal counts only if it is not negated ("no nan", "没有 nan", "不是 OOM", "how to avoid OOM"). A version
counts only if it is said to be in use: "升级到 4.45", "fixed in 4.45", "requires >= 4.45" name a target. Versions given
by two numbers only ("transformers 4.43") are a range, as any patch release may be meant; several versions of one
package are the range between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.language import lowered
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Remedy, Signal
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.negation import INSIDE_HANG, INSIDE_SYMPTOM, RUN
from trainmedic.kb.parse.logs.messages import EXCEPTIONS, MESSAGES, Message, find
from trainmedic.kb.parse.readers.versions import PACKAGES, VERSION, bounds, is_target, next_release, package, public
from trainmedic.kb.parse.said import device_counts, remedies, settings, slowdowns
from trainmedic.kb.parse.said.clauses import clause_at, clauses_of, sentences, tried_in_vain
from trainmedic.kb.parse.said.device_counts import DeviceCount
from trainmedic.kb.parse.said.settings import Stated
from trainmedic.kb.parse.said.version_history import bare, moves, worked
from trainmedic.kb.parse.source import Piece

MAX_CHARACTERS = 100_000
"""No one writes more: beyond it stands pasted output, which the other readers take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProseFacts:
    versions: tuple[VersionFact, ...] = ()
    known_good: tuple[VersionFact, ...] = ()
    signals: tuple[Signal, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    devices: tuple[DeviceCount, ...] = ()
    settings: tuple[Stated, ...] = ()


def read(piece: Piece) -> ProseFacts:
    """Everything stated in the first `MAX_CHARACTERS` of ``piece``. Never raises."""
    if len(piece.text) > MAX_CHARACTERS:
        piece = piece.cut(0, MAX_CHARACTERS)
    versions, known_good = _versions(piece)
    card = device_counts.card(piece)
    slower = slowdowns.read(piece)
    return ProseFacts(
        versions=versions if card is None else (*versions, card),
        known_good=known_good,
        signals=(*_signals(piece), *(() if slower is None else (_signal("throughput_drop", slower),))),
        remedies=remedies.read(piece),
        devices=device_counts.read(piece),
        settings=settings.read(piece),
    )


def comments(piece: Piece) -> ProseFacts:
    """The versions and devices that the comments of a script or configuration name (``# trl 0.26.0, 8 GPUs``)."""
    lines = piece.text.split("\n")
    text = "\n".join(" " * at + line[at:] if (at := line.find("#")) >= 0 else "" for line in lines)
    commented = replace(piece, text=text)
    return ProseFacts(versions=_versions(commented)[0], devices=device_counts.read(commented))


_NAMES = {
    *PACKAGES,
    *(name for profile in profiles().values() for name in profile.names),
    *load_table("parse/data/words.toml")["packages"]["in_prose"],
}
_NAME = "|".join(
    re.escape(name) for name in sorted({name.lower() for name in _NAMES}, key=lambda name: (-len(name), name))
)
# Names are looked for in lower case: ignoring the case of so many takes several times as long.
_VERSION_OF = regex(
    rf"(?<![a-z0-9_/.-])(?P<name>{_NAME})(?![a-z_/]|[0-9]{{1,9}}+(?!\.[0-9]))[`'\"*]{{0,3}}+"
    r"(?P<between>[\s:：=@`'\"(（*]{0,4}+(?:(?:version|ver|v|is|are|was|at|to|is at|is on|版本|版|是|为|用的是"
    r"|的版本是|的版本|版本是|版本为"
    r"|版本号|版本号是|升级到|降到|升到|到)[\s:：=`'\"*]{0,4}+){0,2})"
    rf"(?P<sign>(?:[<>]=?|==?|~=)?)\s?v?(?P<version>{VERSION})(?P<any>\.[x*])?(?![a-z0-9_%])(?!\.[0-9])"
)
_NAMED = regex(rf"(?<![a-z0-9_/.-])(?P<name>{_NAME})(?![a-z0-9_/])")
_VERSION_BEFORE = regex(
    rf"(?<![a-z0-9_./-])v?(?P<version>{VERSION})\s{{0,2}}+(?:版本?的?|的|version of"
    rf"|of)\s{{0,2}}+(?P<name>{_NAME})(?![a-z0-9_/])"
)
_HAVE_ENGINES = frozenset(profile.package for profile in profiles().values() if profile.named_engines)
"""Packages whose "V1" is the name of an engine and no release."""
_MORE = regex(
    rf"\s{{0,2}}+(?:,|，|、|/|and|or|和|与|跟|以及|还有|或)\s{{0,2}}+(?:also "
    rf"|也)?[vV]?(?P<version>{VERSION})(?![A-Za-z0-9_%])(?!\.[0-9])"
)
_MINE = regex(
    r"(?:(?<![a-z])i (?:have|use|run|am on)|我(?:装|用)?的是|我这边是) ?v?"
    rf"(?P<version>(?=[0-9]+\.[0-9]){VERSION})(?![\w%])",
    re.IGNORECASE,
)
"""The version that is installed, behind one that is required."""
_NEAR = 60
_AFTER = (
    (regex(r"\s?(?:以下|之前|or (?:older|lower|below|earlier))"), "<="),
    (regex(r"\s?(?:以上|之后|or (?:newer|higher|above|later))"), ">="),
)


_Claim: TypeAlias = tuple[str | None, str | None, str | None, int, int]
"""(exact, low, high, start, end) of one version that is named."""


def _versions(piece: Piece) -> tuple[tuple[VersionFact, ...], tuple[VersionFact, ...]]:
    """The versions in use, and those with which the same run is said to have worked."""
    text = piece.text
    claims_of: dict[str, list[_Claim]] = {}
    good_of: dict[str, list[_Claim]] = {}
    lower = lowered(text)
    matches = sorted([*_VERSION_OF.finditer(lower), *_VERSION_BEFORE.finditer(lower)], key=lambda match: match.start())
    for match in matches:
        name = package(match["name"])
        groups = match.groupdict()
        version = public(match["version"])
        marked = text[match.start("version") - 1 : match.start("version")] in ("v", "V") and name not in _HAVE_ENGINES
        major = "." not in version and (groups.get("any") or marked)
        if "." not in version and not groups.get("sign") and not major:
            continue
        works = worked(text, match.start(), match.end())
        if not works and is_target(text, match) and not tried_in_vain(text, match.start(), match.end()):
            continue
        before = text[max(0, match.start() - 2) : match.start()] + (groups.get("between") or "")
        moved = not {*"到成至"}.isdisjoint(before)  # "到 4.46 之后" is after the move, not 4.46 or later
        sign = groups.get("sign") or ("" if moved else _sign_after(text, match.end()))
        claims = (good_of if works else claims_of).setdefault(name, [])
        bounds_of = (None, version, next_release(version)) if major and not sign else _known(sign, version)
        claims.append((*bounds_of, match.start(), match.end()))
        at = match.end()
        while not sign and (more := _MORE.match(text, at)) is not None and "." in more["version"]:
            at = more.end()
            works = worked(text, more.start("version"), at)
            claims = (good_of if works else claims_of).setdefault(name, [])
            claims.append((*_known("", public(more["version"])), match.start(), at))
    for move in moves(text) if "." in text else ():
        names = [package(found["name"]) for found in _NAMED.finditer(move.how.lower())]
        if not names and len(every := {package(found["name"]) for found in _NAMED.finditer(lower)}) == 1:
            names = list(every)
        for claims_by_name, (start, end) in ((good_of, move.good), (claims_of, move.broken)):
            for name in names[:1]:
                claims_by_name[name] = [(*_known("", public(text[start:end].lstrip("vV"))), start, end)]
    for mine in _MINE.finditer(text):
        if named := [package(match["name"]) for match in matches if mine.start() - _NEAR < match.end() <= mine.start()]:
            start, end = mine.span("version")
            claims_of[named[-1]] = [(*_known("", public(text[start:end])), start, end)]
    if len({match["name"].lower() for match in matches}) == 1:
        _add_bare(text, package(matches[0]["name"]), matches, (claims_of, good_of))
    _move_working(text, claims_of, good_of)
    good = tuple(_fact(piece, name, claims[:1]) for name, claims in good_of.items())
    return tuple(_fact(piece, name, claims) for name, claims in claims_of.items()), good


def _move_working(text: str, claims_of: dict[str, list[_Claim]], good_of: dict[str, list[_Claim]]) -> None:
    """Of several versions of a package, those of a clause that says that it works so are no longer in use."""
    several = [name for name, claims in claims_of.items() if len(claims) > 1 and name not in good_of]
    clauses = [clause for place in sentences(text) for clause in clauses_of(text, *place)] if several else []
    for name in several:
        works = [claim for claim in claims_of[name] if clause_at(clauses, claim[3]).works]
        if 0 < len(works) < len(claims_of[name]):
            good_of[name] = works
            claims_of[name] = [claim for claim in claims_of[name] if claim not in works]


def _sign_after(text: str, end: int) -> str:
    return next((sign for pattern, sign in _AFTER if pattern.match(text, end)), "")


def _add_bare(
    text: str,
    name: str,
    matches: Sequence[re.Match[str]],
    claims: tuple[dict[str, list[_Claim]], dict[str, list[_Claim]]],
) -> None:
    """The versions behind the only package that is named: "vllm 0.6.3 is fine, 0.7.0 hangs"."""
    taken = [match.span() for match in matches]
    for start, end, works in bare(text):
        if start > taken[0][0] and not any(first <= start < last for first, last in taken):
            claims[works].setdefault(name, []).append((*_known("", public(text[start:end].lstrip("vV"))), start, end))


def _known(sign: str, version: str) -> tuple[str | None, str | None, str | None]:
    """(exact, low, high) of one claim."""
    if sign and sign not in ("=", "=="):
        return (None, *bounds(f"{sign}{version}"))
    if version.count(".") == 1:
        return None, version, next_release(version)
    return version, None, None


def _fact(piece: Piece, name: str, claims: list[_Claim]) -> VersionFact:
    exact, low, high, start, end = claims[0]
    distinct = {claim[:3] for claim in claims}
    if len(distinct) > 1:
        lows = [claim[0] or claim[1] for claim in claims]
        highs = [claim[0] or claim[2] for claim in claims]
        low = None if None in lows else min((v for v in lows if v), key=_order)
        high = None if None in highs else max((v for v in highs if v), key=_order)
        exact, end = None, max(claim[4] for claim in claims)
    span = piece.span(start, end)
    what = "several versions are named" if len(distinct) > 1 else "the user says"
    return VersionFact(
        package=name, exact=exact, reason=f"{what}: {' '.join(span.text.split())[:120]}", span=span, low=low, high=high
    )


def _order(version: str) -> tuple[tuple[int, ...], bool]:
    numbers = tuple(int(part) for part in re.findall(r"[0-9]+", version.split(".dev", 1)[0])[:6])
    return numbers, ".dev" not in version


# Phrases that contain a negation themselves ("does not decrease", "显存不足") are not negated by it.
_SELF_NEGATED = frozenset({"loss_flat", "reward_flat", "accuracy_stuck", "never_stops", "oom", "cpu_oom_killed"})
_NO_PROGRESS = ("0", "progress bar", "进度条")
_JOINED = regex(
    r"\s{0,3}+(?:and|or|as well as|和|与|跟|、|,|，|/|&|以及|都|also|还有)\s{0,3}+(?:the |also )?", re.IGNORECASE
)
_NOT_FINITE = regex(
    r"(?<![A-Za-z0-9_./\\])(?P<what>nans?|inf|infinity|infinite)(?![A-Za-z0-9_(]|\.[A-Za-z])", re.IGNORECASE
)
# NaN in a table of data, or as a word of a program, says nothing about the training.
_NOT_TRAINING = regex(r"data ?(?:set|frame)|csv|pandas|excel|column|数据集|数据里|数据中|某列|字段|空值", re.IGNORECASE)
_SUBJECTS = regex(
    r"(?P<eval_loss>(?:eval(?:uation)?|val(?:idation)?)[ _/-]?loss(?:es)?|验证(?:集)?(?: ?loss|损失)|评估(?: ?loss"
    r"|损失))"
    r"|(?P<nll_loss>nll[ _-]?loss)"
    r"|(?P<grad_norm>grad(?:ient)?s?[ _-]?norms?|gradients?(?![A-Za-z_])(?! (?:clip|check|accum|explo))"
    r"|梯度(?:范数)?(?!爆炸|裁剪|检查|累积|累计)"
    r"|(?<![A-Za-z])grads?(?![A-Za-z_]))"
    r"|(?P<loss>(?<![A-Za-z])loss(?:es)?(?![A-Za-z])|损失)"
    r"|(?P<logps>log[ _-]?p(?:s|rob(?:s|abilities)?)(?![A-Za-z]))"
    r"|(?P<logits>logits?)"
    r"|(?P<kl>(?<![A-Za-z])kl(?![A-Za-z]))"
    r"|(?P<reward>rewards?(?![ _-]?(?:model|func))|奖励(?!模型|函数))",
    re.IGNORECASE,
)


def _stated_patterns() -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    tables = load_table("parse/data/stated.toml")
    stated = []
    for kind, alternatives in tables["stated"].items():
        text = "|".join(alternatives)
        for name, words in tables["words"].items():
            text = text.replace(f"<{name}>", words)
        stated.append(Message(kind, tuple(tables["literals"][kind]), re.compile(text)))
    # an exception by its name alone ("stops with an AssertionError"); one with a message is a traceback
    named = {kind: tuple(name for name, of in EXCEPTIONS.items() if of == kind) for kind in EXCEPTIONS.values()}
    exceptions = (
        Message(kind, names, re.compile(rf"(?<![A-Za-z.])(?:{'|'.join(names)})(?![A-Za-z:：])"))
        for kind, names in named.items()
    )
    return tuple(stated), tuple(exceptions)


STATED, NAMED_EXCEPTIONS = _stated_patterns()
"""The first are for text in lower case: ignoring the case takes twice as long."""


def _signals(piece: Piece) -> tuple[Signal, ...]:
    signals: dict[str, Signal] = {}
    for kind, start, end in sorted(
        [*_stated(piece.text), *_not_finite(piece.text), *_quoted(piece.text)], key=lambda f: (f[1], f[2], f[0])
    ):
        signals.setdefault(kind, _signal(kind, piece.span(start, end)))
    if "loss_zero" in signals and "grad_norm_nan" in signals:
        one = signals["grad_norm_nan"]
        signals["loss_zero_grad_norm_nan"] = Signal(
            kind="loss_zero_grad_norm_nan", span=one.span, stated=True, detail="stated: loss 0 and grad_norm nan"
        )
    return tuple(signals.values())


def _signal(kind: str, span: Span) -> Signal:
    return Signal(kind=kind, span=span, stated=True, detail=f"stated: {' '.join(span.text.split())[:120]}")


def _stated(text: str) -> Iterator[tuple[str, int, int]]:
    for searched, messages in ((lowered(text), STATED), (text, NAMED_EXCEPTIONS)):
        for message in messages:
            for match in message.pattern.finditer(searched) if message.may_match(searched) else ():
                if not _negated_inside(message.kind, match[0]) and not RUN.precedes(text, match.start()):
                    yield message.kind, match.start(), match.end()
                    break


def _negated_inside(kind: str, phrase: str) -> bool:
    if kind in _SELF_NEGATED or phrase.lower().startswith(_NO_PROGRESS):
        return False
    return (INSIDE_HANG if kind == "hang" else INSIDE_SYMPTOM).within(phrase)


def _quoted(text: str) -> Iterator[tuple[str, int, int]]:
    for message in MESSAGES:
        match = find(message, text)
        if match is not None and not RUN.precedes(text, match.start()):
            yield message.kind, match.start(), match.end()


_SENTENCE_END = regex(r"[;!?。；！？\n]|\.(?=\s)")


def _not_finite(text: str) -> Iterator[tuple[str, int, int]]:
    """Every metric that is said to be NaN or infinite: "loss 和 grad_norm 都是 nan" names two."""
    for match in _NOT_FINITE.finditer(text):
        if RUN.precedes(text, match.start()):
            continue
        infinite = match["what"].lower().startswith("inf")
        window = max(0, match.start() - 40)
        begin = max((end.end() for end in _SENTENCE_END.finditer(text, window, match.start())), default=window)
        subjects = _metrics_of(match, text, begin)
        if not (subjects or infinite or _NOT_TRAINING.search(text[begin : match.end() + 20])):
            yield "loss_nan", *match.span()
        for one in subjects:
            kind = f"{one.lastgroup}_{'inf' if infinite and one.lastgroup in ('loss', 'grad_norm') else 'nan'}"
            yield kind, min(one.start(), match.start()), max(one.end(), match.end())


def _metrics_of(word: re.Match[str], text: str, begin: int) -> list[re.Match[str]]:
    """The metrics that "nan" is said of: the last ones named before it, joined by "and", or the one right behind it."""
    before = list(_SUBJECTS.finditer(text, begin, word.start()))
    if not before:
        behind = _SUBJECTS.match(text, word.end() + text.startswith((" ", "的"), word.end()))
        return [behind] if behind is not None else []
    metrics = [before.pop()]
    while before and _JOINED.fullmatch(text, before[-1].end(), metrics[0].start()):
        metrics.insert(0, before.pop())
    return metrics
