"""Sentences that may not stand: they recommend what a case refutes, or contradict what a finding changes. Pure.

Looked at clause by clause: "lower the learning rate" is advice, "lowering it does not help" and "if you lower it" are
not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TypeAlias

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Finding
from trainmedic.kb.negation import ADVICE
from trainmedic.service.llm.verify.pieces import pieces, sentences
from trainmedic.service.llm.verify.words import content

REFUTED = 0.6
"""Share of a refuted claim that a recommending sentence must hold to be that claim."""
TEXTS_KEPT = 4096
"""Texts of cases whose advice is found once: there are about a thousand."""
_FLAGS = re.IGNORECASE | re.ASCII


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """What no sentence may recommend.

    Either a claim: its ``words``, those of them that must all be there (``exact``: numbers, true, false), and which way
    it turns (``turns``: down, up, on, off, older, newer); ``least`` of the words make a sentence that claim. Or an
    ``option`` of a finding with the ``values`` that it may have (none: it must go). Or, where something is wrong, that
    nothing is (``health``).
    """

    words: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()
    least: int = 0
    option: str = ""
    values: frozenset[str] = frozenset()
    health: bool = False


_Said: TypeAlias = tuple[frozenset[str], frozenset[str]]
"""The words of a piece of advice, and which way it turns."""
_TURNS = {
    "down": r"\b(?:lower|reduc|decreas|small|shrink|halv|less\b)\w*|调低|降低|减小|减少|调小|缩小|更小",
    "up": r"\b(?:rais|increas|larg|bigg|higher|enlarg|doubl|more\b)\w*|调高|提高|增大|加大|调大|增加|更大",
    "on": r"\b(?:enabl\w*|add(?:s|ed|ing)?|us(?:e|es|ed|ing)|keep\w*|turn(?:ed|ing)? on|switch\w*|set(?:s|ting)?|"
    r"appl\w+|try|tries|trying|pass(?:es|ing)?|put|leav\w+)\b|启用|开启|打开|加上|加入|添加|使用|改用|换成|改成|改为|设为|设成|设置|保留|保持|用",
    "off": r"\b(?:disabl\w*|remov\w*|drop(?:s|ped|ping)?|delet\w*|turn(?:ed|ing)? off|omit\w*|skip\w*|without)\b"
    r"|关闭|关掉|去掉|删除|删掉|移除|停用|禁用|不用",
    "older": r"\b(?:downgrad|roll(?:ing)? back|older)\w*|降级|回退|降到",
    "newer": r"\b(?:upgrad|updat|newer|newest|latest)\w*|升级|更新|升到",
    "again": r"\b(?:reinstall|restart|rebuild|rerun|re-?download)\w*|重装|重启|重新",
}
_TURNING = {name: re.compile(pattern, _FLAGS) for name, pattern in _TURNS.items()}
_ANY_TURN = re.compile("|".join(_TURNS.values()), _FLAGS)

_DO = (
    r"(?:try(?:ing)?|set(?:ting)?|us(?:e|ed|ing)|low(?:er|ered|ering)|reduc(?:e|ed|ing)|rais(?:e|ed|ing)|"
    r"increas(?:e|ed|ing)|decreas(?:e|ed|ing)|switch(?:ed|ing)?|enabl(?:e|ed|ing)|disabl(?:e|ed|ing)|add(?:ed|ing)?|"
    r"chang(?:e|ed|ing)|upgrad(?:e|ed|ing)|downgrad(?:e|ed|ing)|remov(?:e|ed|ing)|drop(?:ped|ping)?|turn(?:ed|ing)?|"
    r"keep(?:ing)?|kept|leav(?:e|ing)|put|pass(?:ed|ing)?|replac(?:e|ed|ing)|install(?:ed|ing)?|reinstall(?:ed|ing)?|"
    r"clip(?:ped|ping)?|appl(?:y|ied|ying)|run(?:ning)?|restart(?:ed|ing)?|shrink(?:ing)?|halv(?:e|ed|ing)|"
    r"doubl(?:e|ed|ing)|delet(?:e|ed|ing)|skip(?:ped|ping)?|omit(?:ted|ting)?|ignor(?:e|ed|ing)|updat(?:e|ed|ing)|"
    r"rebuild(?:ing)?|mak(?:e|ing)|start(?:ing)?)"
)
_FILLERS = (
    r"and|or|then|also|so|first|second|next|finally|just|simply|please|instead|alternatively|either|otherwise|therefore|"
    r"thus|hence|now|to fix (?:it|this|that)|as a fix|fix|recommendation|advice|solution|what to change|step \d"
)
_IMPERATIVE = re.compile(rf"^\W*(?:(?:{_FILLERS})\b\W*){{0,4}}{_DO}\b(?! of\b)", _FLAGS)
_MODAL = re.compile(
    r"\b(?:should|could|can|may|might|must|needs?|ha(?:ve|s)|want|better|advis\w+|recommend\w*|suggest\w*|consider|try|"
    rf"worth|is|by|let's|fix)\b(?:[\s`*]+(?:to|be|you|it|that|also|then|a|just)\b){{0,4}}[\s`*]+{_DO}\b",
    _FLAGS,
)
_HELPS = re.compile(
    r"\b(?:helps?|fix(?:es)?|solves?|cures?|works|stabili[sz]es?|resolves?|gets? rid|will do)\b", _FLAGS
)
_ADVISES_ZH = re.compile(
    r"建议|尝试|试试|试着|不妨|推荐|最好|务必|应|需要|必须|请|可以(?!看|见|发现|确认|判断|知道|得出)|可通过|能(?:解决|修复|缓解|避免)"
    r"|(?:解决|修复|缓解)(?:问题|这)"
    r"|^[\s\W]*(?:先|再|然后|接着|最后|同时|或者?|并|也|只需|直接|把|将|改法[:：]|修复[:：]|解决方法[:：])*[^，。]{0,24}?"
    r"(?:调低|降低|减小|调小|调高|提高|增大|加大|调大|改用|换成|改成|改为|设为|设成|设置为|设置|启用|开启|打开|关闭|关掉|升级|降级|去掉|加上|添加|"
    r"使用|保留|保持|重装|移除|删除|删掉|更新)(?!了|着|过|的|后|会|时|之)"
)
_LEADS_TO = re.compile(r"导致|引起|造成|触发|才会|就会")
_CONDITION = re.compile(
    r"^\W*(?:(?:and|or|but|even)\W+)?(?:if|when|whenever|because|since|as|once|after|which|that|while|although|though|"
    r"unless|whether|why)\b",
    _FLAGS,
)
# Chinese letters are no word characters to the flags above: what is tied to the beginning needs patterns of its own.
_CONDITION_ZH = re.compile(r"^\W*(?:如果|若|假如|当|因为|由于|一旦|虽然|尽管|即使|只要|是否|为什么)")
_BUT_NOT = re.compile(
    r"^\W*(?:(?:but|though|although|yet|however|and)\W+)?(?:it|this|that|which|they|these|those|doing so|neither)\b"
    r"(?:\W+\w+){0,3}?\W+(?:not|never|no|useless|pointless|nothing|\w+n't)\b"
    r"|^\W*(?:neither|won't|doesn't|does not|will not)\b",
    _FLAGS,
)
_BUT_NOT_ZH = re.compile(r"^\W*(?:但是?|不过|然而|可是|却)?(?:这|它|此|并|也|都|通常|其实|根本|是){0,4}(?:不|没|无)")
_CLAUSE = re.compile(
    r"`[^`\n]*`|([,;](?=\s)|[，；、—]|\s[–-]\s|\s(?=(?:but|if|when|because|since|which|so that|although|though|while|"
    r"unless|once|after|before)\s)|(?=但是?|不过|如果|因为|由于|否则|所以|一旦|即使))",
    _FLAGS,
)
_ADDS = re.compile(_TURNS["on"], _FLAGS)
_REMOVES = re.compile(_TURNS["off"] + r"|\boff\b|\bfalse\b|关", _FLAGS)
_NEWER = re.compile(_TURNS["newer"] + r"|\binstall\w*|安装", _FLAGS)
_HARMLESS = re.compile(
    r"\b(?:(?:is|are|was|looks?|seems?) (?:\w+ )?(?:fine|ok|okay|correct|harmless|unrelated|safe|irrelevant)"
    r"|not the (?:cause|problem|reason|culprit)|nothing to do|has no effect)\b"
    r"|没有?(?:任何)?问题|不是原因|无关|无害|(?<!不)正常",
    _FLAGS,
)
_HEALTHY = re.compile(
    r"\bno[_ ]fault\b|\bnothing (?:is )?(?:actually )?wrong\b"
    r"|\b(?:(?:your|this|the) (?:\w+ )?(?:run|training|script|set-?up|config\w*)|everything|all) (?:is|looks) (?:\w+ )?"
    r"(?:healthy|fine|normal|ok)\b"
    r"|(?<![后就则才会])训练(?:完全|是|一切)?正常|一切正常|没有(?:任何)?故障",
    _FLAGS,
)
_VALUE = re.compile(
    r"^`?(?:\s*(?:=|[:：]|\bto\b|\bof\b|\bis\b|\bat\b|\bas\b|设置为|设为|设成|改成|改为|换成|调到|调成|调为|降到|提高到|为|成)\s*|\s+)"
    r"(?:from\s+`?[^\s`]{1,40}`?\s+to\s+)?(`?)['\"]?([A-Za-z0-9][A-Za-z0-9_.\-+]*)",
    _FLAGS,
)
_FALSE = frozenset({"false", "0", "off", "no", "none", "null", "disabled"})
_TRUE = frozenset({"true", "1", "on", "yes", "enabled"})
_FLAG = re.compile(r"(?<![\w-])--([A-Za-z][\w.\-]*)(?:(?:=|[ \t]+)(?!-)['\"]?([^\s\\'\"]+))?")
_PAIR = re.compile(r"(?<![\w.\-])['\"]?([A-Za-z_][\w.\-]*)['\"]?\s?[:=]\s?['\"]?([^\s,'\"\\)}]+)")


def denials_of(
    cases: Sequence[Case], fired: Sequence[Finding], language: str, *, also: Sequence[Case] = ()
) -> tuple[Denial, ...]:
    """What the cases refute, and what the findings' patches change. ``also`` are cases that only refute.

    What one case refutes is nothing against what the first one says, and a claim is only recognised by more words
    than the case's own advice shares with it.
    """
    found: list[Denial] = []
    first: list[_Said] = []
    for number, case in enumerate((*cases, *also)):
        own = _says(case, language) if case.refutations or not number else []
        first = first if number else own
        claims = [one for each in case.refutations for one in claimed(each.claim.get(language))]
        found += [
            _narrowed(claim, own)
            for claim in claims
            if not number or not any(_is_claim(words, turns, [claim]) for words, turns in first)
        ]
    fixes = " ".join(case.section("fix", each) for case in cases for each in ("en", "zh")).casefold()
    right: dict[str, set[str]] = {}
    for finding in fired:
        said = " ".join(f"{fix.text.en} {fix.text.zh}" for fix in finding.fixes).casefold()
        for fix in finding.fixes:
            for name, value in changed(fix.patch or "").items():
                values = right.setdefault(name, set())
                if value:
                    # What another fix of the finding or case says is right too.
                    values |= {value, *re.findall(r"[a-z0-9][a-z0-9_.+\-]*[a-z0-9]", f"{said} {fixes}")}
    if cases and cases[0].kind == "fault":
        found.append(Denial(health=True))
    found += [Denial(option=name, values=frozenset(values)) for name, values in right.items()]
    return tuple(dict.fromkeys(found))


def claimed(claim: str) -> Iterator[Denial]:
    """What a claim recommends; a claim that recommends nothing as a whole."""
    parts = [part for part in clauses(claim) if advises(part)] or [claim]
    for part in parts:
        words = _topic(part)
        if len(words) < 2:  # "halve it"
            words = _topic(claim)
        exact = frozenset(w for w in words if w[0].isdigit() or w in ("true", "fals", "false", "none"))
        if words:
            yield Denial(words=words, exact=exact, turns=_turns(part))


def _says(case: Case, language: str) -> list[_Said]:
    """What a case itself recommends."""
    texts = [case.section(name, language) for name in ("cause", "fix", "confirm")]
    texts += [each.why.get(language) for each in case.refutations]
    return [said for text in texts for said in _advice_in(text)]


@lru_cache(maxsize=TEXTS_KEPT)
def _advice_in(text: str) -> tuple[_Said, ...]:
    """What a text recommends."""
    bodies = (piece.body for piece in pieces(text) if piece.kind == "text")
    said = (sentence for body in bodies for sentence in sentences(body))
    advice = (part for sentence in said for part in _recommended(sentence, _advice(clauses(sentence))))
    return tuple((content(part), _turns(part)) for part in advice)


def _narrowed(claim: Denial, own: Sequence[_Said]) -> Denial:
    """The claim, so that advice of the same case is not taken for it, unless it says every word of it."""
    shared = [len(words & claim.words) for words, turns in own if _is_claim(words, turns, [claim])]
    return replace(claim, least=min(max(shared) + 1, len(claim.words))) if shared else claim


def changed(patch: str) -> dict[str, str]:
    """Option → the value that a patch gives it; empty where the patch takes it away. What only moves is no change."""
    before, after = ({name: value for line in _lines(patch, sign) for name, value in _written(line)} for sign in "-+")
    gone = {name: "" for name in before if name not in after}
    return gone | {name: value for name, value in after.items() if before.get(name) != value}


def _lines(patch: str, sign: str) -> Iterator[str]:
    for line in patch.split("\n"):
        if line.startswith(sign) and not line.startswith(sign * 3):
            yield line[1:]


def _written(line: str) -> Iterator[tuple[str, str]]:
    flags = [(name, (value or "true").casefold()) for name, value in _FLAG.findall(line)]
    yield from flags
    if not flags:
        yield from ((name, value.casefold()) for name, value in _PAIR.findall(line))


def clauses(sentence: str) -> list[str]:
    """The sentence's clauses; what stands in code divides none."""
    parts, last = [], 0
    for match in _CLAUSE.finditer(sentence):
        if match[1] is not None:
            parts.append(sentence[last : match.start()])
            last = match.end()
    return [part for part in (*parts, sentence[last:]) if part.strip()]


def advises(clause: str) -> bool:
    """Whether a clause recommends something: not a condition, not a description, not denied."""
    if _conditional(clause) or ADVICE.within(clause):
        return False
    if _IMPERATIVE.search(clause) or _MODAL.search(clause) or _HELPS.search(clause):
        return True
    return _ADVISES_ZH.search(clause) is not None and _LEADS_TO.search(clause) is None


def _conditional(clause: str) -> bool:
    return _CONDITION.search(clause) is not None or _CONDITION_ZH.search(clause) is not None


def _takes_back(clause: str) -> bool:
    return _BUT_NOT.search(clause) is not None or _BUT_NOT_ZH.search(clause) is not None


def denied(sentence: str, denials: Sequence[Denial]) -> bool:
    """Whether the sentence recommends what is refuted, or contradicts a finding."""
    parts = clauses(sentence)
    advice = _advice(parts)
    claims = [denial for denial in denials if denial.words]
    if claims and any(_is_claim(content(part), _turns(part), claims) for part in _recommended(sentence, advice)):
        return True
    if any(denial.health for denial in denials) and any(
        _HEALTHY.search(part) for part in parts if not (_conditional(part) or ADVICE.within(_HEALTHY.sub(" ", part)))
    ):
        return True
    options = [denial for denial in denials if denial.option]
    return any(
        any(_contradicts(part, sentence, denial) for part in advice)
        or any(_harmless(part, denial) for part in parts if not _conditional(part))
        for denial in options
    )


def _advice(parts: Sequence[str]) -> list[str]:
    """The clauses that recommend something and are not taken back."""
    return [
        part
        for n, part in enumerate(parts)
        if advises(part) and not any(_takes_back(later) for later in parts[n + 1 : n + 3])
    ]


def _recommended(sentence: str, advice: list[str]) -> list[str]:
    """What a sentence recommends: clauses of it, and the whole of it where nothing in it is denied."""
    return [*advice, sentence] if advice and not ADVICE.within(sentence) else advice


def line_denied(line: str, denials: Sequence[Denial]) -> bool:
    """Whether a line of code writes what a finding removes, or another value than the right ones."""
    if line.lstrip()[:1] in ("#", "") or re.match(r"\s*-(?!-)", line):
        return False
    for denial in denials:
        found = _option(denial.option).search(line) if denial.option else None
        if found is None:
            continue
        value = _VALUE.match(line[found.end() :])
        written = value[2].casefold() if value else ""
        if not denial.values and written not in _FALSE:
            return True
        if denial.values and written and _unlike(written, denial.values):
            return True
    return False


def _is_claim(words: frozenset[str], turns: frozenset[str], claims: Sequence[Denial]) -> bool:
    return any(
        claim.exact <= words
        and (not claim.turns or bool(claim.turns & turns))
        and len(words & claim.words) >= max(claim.least, REFUTED * len(claim.words))
        for claim in claims
    )


def _topic(text: str) -> frozenset[str]:
    return content(_ANY_TURN.sub(" ", text))


def _turns(text: str) -> frozenset[str]:
    return frozenset(name for name, pattern in _TURNING.items() if pattern.search(text))


@cache
def _option(name: str) -> re.Pattern[str]:
    spelled = "[-_]".join(re.escape(part) for part in re.split("[-_]", name))
    return re.compile(rf"(?<![A-Za-z0-9_.])(?:--)?{spelled}(?![A-Za-z0-9_])", _FLAGS)


def _contradicts(clause: str, sentence: str, denial: Denial) -> bool:
    found = _option(denial.option).search(clause)
    if found is None:
        return False
    value = _VALUE.match(clause[found.end() :])
    written = value[2].rstrip(".").casefold() if value and _is_value(value) else ""
    if not denial.values:
        # A newer release may take the option well: that is another fix of the same finding.
        kept = _ADDS.search(clause) and not _REMOVES.search(clause) and written not in _FALSE
        return bool(kept) and not _NEWER.search(sentence)
    if written:
        return _unlike(written, denial.values)
    return bool(denial.values & _TRUE) and _REMOVES.search(clause) is not None


def _is_value(match: re.Match[str]) -> bool:
    value = match[2]
    return bool(match[1]) or re.search(r"[\d_]", value) is not None or value.casefold() in _FALSE | _TRUE


def _unlike(written: str, values: frozenset[str]) -> bool:
    if written in values or (written in _TRUE and values & _TRUE):
        return False
    try:
        return not any(float(written) == float(value) for value in values if re.match(r"[\d.]", value))
    except ValueError:
        return True


def _harmless(clause: str, denial: Denial) -> bool:
    found = _option(denial.option).search(clause)
    said = _HARMLESS.search(clause, found.end()) if found else None
    return said is not None and not re.search(r"\bwithout\b|去掉|移除|删", clause, _FLAGS)
