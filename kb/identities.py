"""People and machines in a text → ``x``, before it is stored or sent to someone who did not write it.

Secrets are masked before anything reads a text (`kb.mask`). Names of users and hosts are not: the rules and the patch
need the user's own paths, and whoever pasted them may see them. They go where a text leaves for elsewhere. Length,
line breaks, digits in the name of a host and the last number of an address stay, so that positions remain those of the
user's text and node 3 remains another than node 7. Linear: candidates are found by plain substring search and examined
within bounded windows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trainmedic.kb.data_files import load_table
from trainmedic.kb.language import lowered
from trainmedic.kb.lazy import regex

Span = tuple[int, int]

_TABLE = load_table("identities.toml")
_SHARED = frozenset(_TABLE["shared_accounts"])
_PUBLIC = frozenset(_TABLE["public_hosts"])
_STRONG = frozenset(_TABLE["strong_endings"])
_ENDINGS = _STRONG | frozenset(_TABLE["weak_endings"])
_SCHEMES = frozenset(_TABLE["schemes"])
_HOST_NAMES = tuple(_TABLE["host_names"])
_PLAIN_HOST_NAMES = tuple(_TABLE["plain_host_names"])
_USER_VARIABLES = tuple(_TABLE["user_variables"])
_USER_NAMES = tuple(_TABLE["user_names"])
_NOBODY = _SHARED | frozenset(_TABLE["accounts_of_sites"])
_ROLES = frozenset(_TABLE["roles"])
_LISTINGS = tuple((each["number"], each["user"], each["host"]) for each in _TABLE["listings"])
_LISTED = tuple(_TABLE["listing_needles"])

MOST_NAMES = 20
"""Names that are looked for in other places than where they were recognised: each costs a search."""
_HOST_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
_LETTER = regex(r"[^\W\d_]")
_VISIBLE = regex(r"[^\r\n]")
_LAST_NUMBER = regex(r"(?<![\d.])(?:\d{1,3}\.){3}(?=\d{1,3}$)")

_HOME = regex(r"/(?:home|Users|users?)/(?P<name>[^\s/\\'\"`:;,<>(){}$%*\[\]|&=，。；：、）（”“…]{1,64})")
_PROFILE = regex(
    r"\\Users\\{1,2}(?P<name>[^\\/:*?\"<>|\s$%{](?:[^\\/:*?\"<>|\r\n]{0,62}[^\\/:*?\"<>|\s])?(?=\\)|[\w.-]{1,64})"
)
_TILDE = regex(r"~(?<![\w/.~-]~)(?P<name>[a-z_][\w-]{1,31})(?=/)")
_VALUE = regex(
    r"\\?[\"']?[ \t]*(?:[:=：]|(?<=[A-Za-z])[ \t])[ \t]*\\?[\"']?"
    r"(?P<value>[A-Za-z0-9\u3400-\u9fff][\w\u3400-\u9fff.-]{0,253}(?:\[[\d,-]{1,64}\])?)(?![\w/\\(])"
)
_NO_NAME = regex(
    r"(?:none|null|nil|true|false|yes|no|on|off|auto|unset|str|string|bool|int|any|self|localhost(?:\.localdomain)?"
    r"|(?:args|self|config|cfg|os|opts?|options|settings|env)\..*|[\d:-]+|127(?:\.\d{1,3}){3}|0\.0\.0\.0|255(?:\.\d{1,3}){3}|x+)",
    re.IGNORECASE,
)
_AUTHORITY = regex(r"(?:[^\s/@\"'<>]{1,256}@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,253})(?=[:/\s\"'<>)\]},;?#`|\\]|$)")
_AFTER_AT = regex(r"[A-Za-z0-9][A-Za-z0-9.-]{0,253}")
_ENDING = regex(r"\.([A-Za-z]{2,11})(?![A-Za-z0-9_(-]|\.[A-Za-z0-9_])")
# A pattern that begins with what it looks for is found ten times as fast as one that begins with a lookbehind.
_ADDRESS_END = regex(r"\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w.]?\d)")
_ADDRESS_START = regex(r"(?<![\w.-])\d{1,3}$")
_PRIVATE = regex(
    r"(?:10\.|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\.|169\.254\.|100\.(?:6[4-9]|[789]\d|1[01]\d|12[0-7])\.)"
)
_PORT = regex(r"[:<]\d")
_DASHED = regex(r"(?<![\w-])ip(?P<address>(?:-\d{1,3}){4})(?![\w-])")
_SIX = regex(r"[fF](?<![\w:.].)(?:[eE]80|[cCdD][0-9a-fA-F]{2}):[0-9a-fA-F:]{2,40}(?![\w:])")
_VERSION_BEFORE = regex(
    r"(?:(?:==|>=|<=|~=|!=|\bv|version[ :=]{1,3})"
    r"|(?:curand|tensorrt|trt|cuda|nvidia|rocm|driver)[\w.-]{0,20}[\"']?[ \t:=,]{0,40})$",
    re.IGNORECASE,
)
_PROCESS = regex(r":\d{1,9}:\d{1,9} \[")
_LINE_NAME = regex(r"[A-Za-z][\w.-]{0,62}")
_REMOTE = regex(
    r"(?<![\w-])(?:(?:ssh|mosh|sftp|ssh-copy-id)(?:[ \t]+-\S+(?:[ \t]+[^\s@-][^\s@]*)?){0,8}"
    r"|(?:scp|rsync)(?:[ \t]+[^\s@]+){0,8})[ \t]+$"
)
_LOGIN = regex(
    r"[Ll]ogged in as:?[ \t]+(?:\x1b\[[0-9;]{0,16}m)?(?P<name>[A-Za-z0-9][\w.-]{0,62}[\w-])(?:\x1b\[[0-9;]{0,16}m)?"
    r"(?:[ \t]+\((?:\x1b\[[0-9;]{0,16}m)?(?P<team>[A-Za-z0-9][\w.-]{1,63}))?"
)
_SITE = regex(
    r"(?<![\w.-])(?:wandb\.ai/|swanlab\.cn/@)(?P<name>[A-Za-z0-9][\w.-]{0,63})"
    r"(?=/[\w.%-]{1,128}(?:/(?:runs?|sweeps|groups|workspace|artifacts)\b|[\s\"')]|$))"
)
_SIGNED = regex(
    r"(?m)^[ \t>]{0,16}(?:Author|Commit|Committer|[A-Z][\w-]{1,20}-by):[ \t]{1,8}"
    r"(?P<name>[^\s<][^\n<]{0,62}[^\s<])(?=[ \t]{1,4}<[^\s<>]{0,64}@)"
)
_SLOTS = regex(r"(?m)^[ \t]{0,16}(?P<name>[A-Za-z][\w.-]{0,62})(?=[ \t]{1,16}slots[ \t]?=[ \t]?\d)")
_OUTPUT = regex(r": {1,4}(?=Traceback|File |\[?20\d\d-|\[rank\d)")
_FILE = regex(
    r"(?m)^[bcdlps-](?:[r-][w-][xsStT-]){3}[.+@]?[ \t]{1,16}\d{1,9}[ \t]{1,16}"
    r"(?P<user>[^\s\d]\S{0,63})[ \t]{1,16}(?P<group>[^\s\d]\S{0,63})(?=[ \t]{1,16}\d)"
)
_ACCOUNTS = (
    (("ogged in as",), _LOGIN),
    (("Author:", "-by:"), _SIGNED),
    (("-rw", "drw"), _FILE),
)
_WORD = regex(r"\S+")
_BRACKETED = regex(
    r"\[(?P<address>(?=[^\]]{0,40}::|(?:[0-9a-fA-F]{1,4}:){7})[0-9a-fA-F]{1,4}:[0-9a-fA-F:]{1,40})\](?=:\d)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """Names that were recognised in the texts of one conversation, so that they are masked wherever they stand."""

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


NOBODY = Identities()


def identities_of(texts: Iterable[str]) -> Identities:
    """The names in these texts that are told apart from words: at most `MOST_NAMES` of each kind, the first ones."""
    hosts: dict[str, None] = {}
    users: dict[str, None] = {}
    for text in texts:
        lower = lowered(text)
        machines = [*_fields(text, lower), *_addressed(text), *_log_prefixes(text)]
        people = [*_prompts(text, machines), *_homes(text), *_user_fields(text, lower), *_accounts(text)]
        people += _columns(text, machines)
        for start, end in machines:
            name = text[start:end].partition("[")[0].rstrip(".-")
            if len(name) >= 4 and _is_marked(name) and not name.replace(".", "").isdigit():
                hosts.setdefault(name)
        for start, end in people:
            if end - start >= 3:
                users.setdefault(text[start:end])
    return Identities(hosts=tuple(hosts)[:MOST_NAMES], users=tuple(users)[:MOST_NAMES])


def mask_identities(text: str, known: Identities = NOBODY) -> str:
    """``text`` with the names of people and machines as ``x``: same length, and masking again changes nothing.

    ``known`` are names that other texts told.
    """
    if len(text) < 4:
        return text
    lower = lowered(text)
    machines = [*_fields(text, lower), *_addressed(text), *_hosts(text), *_log_prefixes(text)]
    people = [*_prompts(text, machines), *_homes(text), *_user_fields(text, lower), *_accounts(text)]
    people += [*_columns(text, machines), *_links(text)]  # what a link tells may be the name of a project elsewhere
    people += _mentions(text, known.users, r"(?<=[/\\])(?:{})(?=[/\\\s\"',;:)]|$)")
    machines += _mentions(text, known.hosts, r"(?<![\w-])(?:{})(?![\w-])")
    replacements = [(start, end, _VISIBLE.sub("x", text[start:end])) for start, end in people]
    replacements += [(start, end, _nameless(text[start:end])) for start, end in machines]
    replacements += [(start, end, _numberless(text[start:end])) for start, end in _ip_addresses(text)]
    return _replaced(text, replacements)


def masked_values(value: object, known: Identities = NOBODY, keep: frozenset[str] = frozenset()) -> object:
    """JSON's values with every text masked, except those under a key in ``keep``."""
    if isinstance(value, str):
        return mask_identities(value, known)
    if isinstance(value, Mapping):
        return {key: item if key in keep else masked_values(item, known, keep) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked_values(item, known, keep) for item in value]
    return value


def _replaced(text: str, replacements: list[tuple[int, int, str]]) -> str:
    """Overlapping replacements are one after the other: what the first has hidden the second leaves alone."""
    if not replacements:
        return text
    letters = list(text)
    for start, end, new in replacements:
        for place, letter in enumerate(new, start):
            if place < end and letter != text[place]:
                letters[place] = letter
    return "".join(letters)


def _nameless(name: str) -> str:
    return _numberless(name) if _LAST_NUMBER.search(name) else _LETTER.sub("x", name)


def _numberless(address: str) -> str:
    """An address whose last number alone is told."""
    head = address[: max(address.rfind(mark) for mark in ".-:") + 1]
    return re.sub(r"[0-9A-Fa-f]", "x", head) + address[len(head) :]


def _is_marked(name: str) -> bool:
    """A digit, a hyphen or a dot: it is a name and no word."""
    return any(letter.isdigit() or letter in "-." for letter in name)


def _is_public(host: str) -> bool:
    parts = host.lower().strip(".").split(".")
    return any(".".join(parts[place:]) in _PUBLIC for place in range(len(parts)))


def _is_private(host: str) -> bool:
    return not _NO_NAME.fullmatch(host) and not _is_public(host)


def _homes(text: str) -> Iterator[Span]:
    for pattern in (_HOME, _PROFILE, _TILDE):
        for match in pattern.finditer(text):
            name = match["name"].lower()
            if name not in _SHARED and name.strip("."):
                yield match.span("name")


def _named(text: str, lower: str, words: Iterable[str]) -> Iterator[tuple[int, int, bool]]:
    """Values of the fields whose name ends with one of ``words``, and whether that word is a whole one."""
    for word in words:
        at = lower.find(word)
        while at >= 0:
            end = at + len(word)
            match = _VALUE.match(text, end)
            # A blank separates an option from its value, and otherwise words from words.
            if match and (text[end : match.start("value")].strip(" \t") or _is_option(text, at)):
                yield *match.span("value"), at == 0 or not (text[at - 1].isalnum())
            at = lower.find(word, end)


def _is_option(text: str, at: int) -> bool:
    window = text[max(0, at - 40) : at]
    return window[len(window.rstrip("abcdefghijklmnopqrstuvwxyz_-")) :].startswith("--")


def _fields(text: str, lower: str) -> Iterator[Span]:
    for start, end, _ in _named(text, lower, _HOST_NAMES):
        if _is_private(text[start:end]):
            yield start, end
    for start, end, whole in _named(text, lower, _PLAIN_HOST_NAMES):
        value = text[start:end]
        if whole and _is_marked(value) and _is_private(value) and not _is_number(value):
            yield start, end


def _is_number(value: str) -> bool:
    return value.replace(".", "", 1).replace("-", "", 1).isdigit() or (value[0].isdigit() and "." not in value)


def _user_fields(text: str, lower: str) -> Iterator[Span]:
    for words, searched in ((_USER_VARIABLES, text), (_USER_NAMES, lower)):
        for start, end, whole in _named(text, searched, words):
            value = text[start:end]
            # "USER: hello" is a turn of a conversation.
            said = words is _USER_VARIABLES and "=" not in text[start - 4 : start]
            if whole and not said and not _NO_NAME.fullmatch(value) and value.lower() not in _SHARED:
                yield start, end


def _addressed(text: str) -> Iterator[Span]:
    """The hosts of ``scheme://host``."""
    at = text.find("://")
    while at >= 0:
        window = text[max(0, at - 12) : at]
        scheme = window[len(window.rstrip("abcdefghijklmnopqrstuvwxyz+")) :]
        match = _AUTHORITY.match(text, at + 3)
        if match and scheme in _SCHEMES and _is_private(match["host"]):
            yield match.span("host")
        at = text.find("://", at + 3)


def _hosts(text: str) -> Iterator[Span]:
    """Host names by their ending: ``node-17.corp.example.com``."""
    done = 0
    for match in _ENDING.finditer(text):
        ending = match[1].lower()
        if ending not in _ENDINGS or match.start() < done:
            continue
        window = text[max(done, match.start() - 253) : match.start()]
        name = window[len(window.rstrip(_HOST_LETTERS)) :].lstrip(".-")
        start = match.start() - len(name)
        # An address was masked up to the @, whatever its host; two parts may be a company, an attribute or a sentence.
        of_mail = start > 0 and text[start - 1] == "@"
        parts = name.split(".")
        several = len(parts) > 1 or of_mail or ending in ("corp", "lan", "intranet", "localdomain", "local", "internal")
        marked = any(letter.isdigit() or letter == "-" for letter in name)
        if name and several and (ending in _STRONG or of_mail or marked) and _is_private(text[start : match.end()]):
            done = match.end()
            yield start, match.end()


def _prompts(text: str, machines: list[Span]) -> Iterator[Span]:
    """The people of ``alice@node-17:~$``, ``[alice@node-17 run]$`` and ``scp alice@node-17:/data``; their machines are
    added to ``machines``."""
    at = text.find("@")
    remote = at >= 0 and any(map(text.__contains__, ("ssh", "mosh", "sftp", "scp", "rsync")))
    while at >= 0:
        window = text[max(0, at - 32) : at]
        name = window[len(window.rstrip(_HOST_LETTERS + "_")) :]
        host = _AFTER_AT.match(text, at + 1)
        if name and name != "git" and host:
            after = text[host.end() : host.end() + 2]
            bracket = text[at - len(name) - 1 : at - len(name)] == "["
            if (
                (after[:1] == ":" and after[1:2] in ("~", "/", " "))
                or (bracket and after[:1] == " ")
                or text.startswith("'s password", host.end())
                or (remote and _REMOTE.search(text[max(0, at - len(name) - 160) : at - len(name)]))
            ):
                if _is_private(host[0]):
                    machines.append(host.span())
                if name not in _SHARED:
                    yield at - len(name), at
        at = text.find("@", at + 1)


def _log_prefixes(text: str) -> Iterator[Span]:
    """The host before each line of NCCL (``node-17:4321:4388 [0] NCCL INFO …``) or pdsh (``node-17: Traceback``), and
    those of a host file (``node-17 slots=8``)."""
    if "NCCL" in text:
        for match in _PROCESS.finditer(text):
            start, name = _before(text, match.start(), 40)
            if name and _is_private(name):
                yield start, match.start()
    if "slots" in text:
        for match in _SLOTS.finditer(text):
            if _is_private(match["name"]) and not _is_role(match["name"]):
                yield match.span("name")
    if ": Traceback" in text or ": [20" in text or ": 202" in text:
        yield from _outputs(text)


def _outputs(text: str) -> Iterator[Span]:
    """The hosts before lines of output. A line may begin with anything; several with the same begin with a machine, if
    it is not a role in the run."""
    before: dict[str, list[Span]] = {}
    for match in _OUTPUT.finditer(text):
        start, name = _before(text, match.start(), 0)
        if name[-1:].isdigit():
            before.setdefault(name, []).append((start, match.start()))
    for name, spans in before.items():
        if len(spans) > 1 and not _is_role(name) and _is_private(name):
            yield from spans


def _is_role(name: str) -> bool:
    return name.lower().rstrip("0123456789").rstrip("-_.") in _ROLES


def _before(text: str, end: int, indent: int) -> tuple[int, str]:
    """The name that ends here, at most so many characters behind the beginning of its line; else an empty one."""
    window = text[max(0, end - 64 - indent) : end]
    line = window.rpartition("\n")[2]
    begins = len(line) < len(window) or len(window) == end
    name = line[len(line.rstrip(_HOST_LETTERS + "_")) :]
    if not begins or len(line) - len(name) > indent or not _LINE_NAME.fullmatch(name):
        return end, ""
    return end - len(name), name


def _accounts(text: str) -> Iterator[Span]:
    """The people who are logged in, who signed a commit, and who own a file."""
    for needles, pattern in _ACCOUNTS:
        for match in pattern.finditer(text) if any(map(text.__contains__, needles)) else ():
            for group in pattern.groupindex:
                name = match[group]
                if name and name.lower() not in _NOBODY and not _NO_NAME.fullmatch(name):
                    yield match.span(group)


def _links(text: str) -> Iterator[Span]:
    """The people whose run a link shows."""
    if "wandb.ai/" in text or "swanlab.cn/@" in text:
        for match in _SITE.finditer(text):
            if match["name"].lower() not in _NOBODY:
                yield match.span("name")


def _columns(text: str, machines: list[Span]) -> Iterator[Span]:
    """The people in a listing of jobs or processes under its header; the machines are added to ``machines``."""
    if not any(map(text.__contains__, _LISTED)):
        return
    at, listing = 0, None
    for line in text.split("\n"):
        words = [*_WORD.finditer(line)] if len(line) <= 400 else []
        header = _listing([word[0].upper() for word in words])
        if header:
            listing = header
        elif listing and set(line) - set("- \r"):  # sacct underlines its header
            number, user, host = listing
            if len(words) <= max(number, user) or not words[number][0][0].isdigit():
                listing = None
            else:
                name = words[user][0]
                if name.lower() not in _SHARED and not name.isdigit():
                    yield at + words[user].start(), at + words[user].end()
                if (
                    host is not None
                    and len(words) > host
                    and _is_marked(machine := words[host][0])
                    and machine[0].isalpha()
                ):
                    machines.append((at + words[host].start(), at + words[host].end()))
        at += len(line) + 1


def _listing(words: list[str]) -> tuple[int, int, int | None] | None:
    """The places of the number, the user and the host in a listing with this header."""
    for number, user, host in _LISTINGS:
        if number in words and user in words:
            return words.index(number), words.index(user), words.index(host) if host in words else None
    return None


def _ip_addresses(text: str) -> Iterator[Span]:
    for match in _ADDRESS_END.finditer(text):
        first = _ADDRESS_START.search(text, max(0, match.start() - 3), match.start())
        if first is None:
            continue
        start, end = first.start(), match.end()
        address = text[start:end]
        if not _PRIVATE.match(address) and not _PORT.match(text, end):
            continue
        before = text[max(0, start - 64) : start].rpartition("\n")[2]
        # nvidia-curand-cu12 10.3.5.147 is a version.
        if not _NO_NAME.fullmatch(address) and not _VERSION_BEFORE.search(before):
            yield start, end
    if "ip-" in text:
        for match in _DASHED.finditer(text):
            yield match.span("address")
    if "]:" in text:
        for match in _BRACKETED.finditer(text):
            yield match.span("address")
    if "::" in text or "fe80" in text:
        for match in _SIX.finditer(text):
            yield match.span()


def _mentions(text: str, names: tuple[str, ...], pattern: str) -> Iterator[Span]:
    present = [re.escape(name) for name in names if name in text]
    if present:
        for match in re.finditer(pattern.format("|".join(sorted(present, key=len, reverse=True))), text):
            yield match.span()
