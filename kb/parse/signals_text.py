"""Signals that are words in a log: crashes, warnings and refusals. `scan` works on log text, never on what a user asks.

Every entry names the literal text that has to be there (a cheap test on the whole piece), then a pattern for the exact
place. Patterns have no nested quantifiers, so a scan is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmedic.kb.model.evidence import Signal, Traceback
from trainmedic.kb.parse.source import Piece


@dataclass(frozen=True, slots=True)
class _Text:
    """``literals``: any of them must be in the text. ``group`` ``value`` of the pattern, if any, is the signal's
    value."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    least: int = 1  # how many times it must occur


def _text(kind: str, literals: Sequence[str], pattern: str, least: int = 1) -> _Text:
    return _Text(kind, tuple(literals), re.compile(pattern), least)


_REST = r"[^\n]{0,200}+"
PATTERNS: tuple[_Text, ...] = (
    _text("oom", ("out of memory", "OutOfMemoryError", "CUDA OOM"), rf"(?:(?:CUDA|HIP|NPU"
                                                                    rf"|XPU) (?:error: )?out of memory"
                                                                    rf"|OutOfMemoryError\b|CUDA OOM\b){_REST}"),
    _text("cpu_oom_killed", ("-9", "oom-kill", "OOM-kill", "Out of memory: Kill", "Killed", "SIGKILL", "oom_kill"),
          r"exitcode\s{0,20}+: -9|exit ?code:? -9|\(exitcode: -9\)|return code (?:=|is) -9"
          r"|[Oo][Oo][Mm][-_ ]kill\w{0,10}+(?! due to high memory)|Out of memory: Kill"
          r"|died with <Signals\.SIGKILL|(?m:^)Killed(?=\s|$)"
          r"|Signal 9 \(SIGKILL\)"),
    _text("nccl_timeout", ("Watchdog caught", "watchdog", "collective operation timeout", "Socket Timeout"),
          rf"Watchdog caught collective operation timeout{_REST}|NCCL (?:watchdog|timeout){_REST}"
          rf"|[Ss]ocket Timeout(?= ?\n| ?$)"
          rf"|collective operation timeout{_REST}|wait timeout after [0-9]{{1,12}}+ms{_REST}"),
    _text("nccl_error", ("NCCL", "ncclInternalError", "ncclSystemError"), r"NCCL error[^\n]{0,120}+"
                                                                          r"|nccl(?:InternalError|SystemError"
                                                                          r"|UnhandledCudaError|RemoteError"
                                                                          r"|InvalidUsage)\b[^\n]{0,120}+"
                                                                          r"|NCCL WARN[^\n]{0,120}+"),
    _text("cublas_error", ("CUBLAS_STATUS", "cublas"), r"CUBLAS_STATUS_\w{1,40}+"),
    _text("cuda_error", ("CUDA error", "device-side assert", "illegal memory access", "no kernel image"),
          rf"CUDA error: (?!out of memory){_REST}|device-side assert triggered|illegal memory access"
          rf"|no kernel image is available"),
    _text("fp16_unscale_error", ("unscale FP16", "unscale fp16"), r"[Aa]ttempting to unscale (?:FP16|fp16) gradients"),
    _text("loss_scale_collapse", ("loss scale already at minimum", "loss_scale already", "Loss scale already",
          "minimum loss scale"),
          rf"(?i:(?:current )?loss[ _]scale already at minimum){_REST}|minimum loss scale{_REST}"),
    _text("kl_negative", ("starting to become negative",), rf"KL divergence is starting to become negative{_REST}"),
    _text("labels_all_ignored", ("-100", "response key", "response template", "instruction ", "ignored in loss"),
          rf"(?i:all (?:the )?labels (?:are|were) -100|labels? (?:are |is )?all -100|could not find (?:response"
          rf"|instruction) (?:key|template)[^\n]{{0,80}}|this instance will be ignored in loss calculation){_REST}"),
    _text("shape_mismatch", ("size mismatch", "shape", "Shape", "must match the size"),
          rf"size mismatch for{_REST}|mat1 and mat2 shapes cannot be multiplied{_REST}"
          rf"|[Tt]he size of tensor a \({_REST}|shape mismatch{_REST}|[Ss]hapes? (?:do not|don't) match{_REST}"),
    _text("unrecognized_argument", ("unrecognized arguments", "not used by the HfArgumentParser",
          "unexpected keyword", "not in struct", "Could not override", "invalid choice", "remaining_argv",
          "ignored_args", "Some keys are not used"),
          rf"unrecognized arguments:{_REST}|Some (?:specified arguments"
          rf"|keys) are not used by the HfArgumentParser{_REST}|unexpected keyword argument{_REST}"
          rf"|Key '[^'\n]{{1,80}}+' is not in struct|Could not override '[^'\n]{{1,120}}+'"
          rf"|argument {_REST[:-1]}?: invalid choice: {_REST}|remaining_argv: \[[^\]\n]{{1,200}}+\]"),
    _text("missing_module", ("No module named", "ackage", "not found"), r"No module named '?[\w.]{1,100}+'?"
                                                                        r"|requires? the [\w. -]{1,60}+ (?:library"
                                                                        r"|package) but it was not found"),
    _text("import_error", ("cannot import name", "undefined symbol", "ImportError"), rf"cannot import name '?"
                                                                                     rf"\w{{1,80}}+'?{_REST}"
                                                                                     rf"|undefined symbol: {_REST}"
                                                                                     rf"|\bImportError: (?!No module "
                                                                                     rf"named){_REST}"),
    _text("connection_error", ("onnection", "couldn't connect", "Max retries", "Name or service not known",
          "huggingface.co"),
          rf"\b(?:Connection(?:Error|RefusedError|ResetError|TimeoutError)|ReadTimeout|ConnectTimeout"
          rf"|MaxRetryError)\b{_REST}|[Cc]onnection refused|Name or service not known"
          rf"|couldn't connect to 'https://huggingface\.co'"),
    _text("tokenizer_warning", ("Token indices sequence length", "pad_token", "special tokens", "eos_token",
          "Setting `pad_token_id`"),
          rf"Token indices sequence length is longer than{_REST}|Setting `pad_token_id`{_REST}|new (?:bos|eos|pad"
          rf"|PAD/BOS/EOS) tokens? that differ{_REST}|tokenizer has new PAD/BOS/EOS tokens{_REST}"
          rf"|Special tokens have been added{_REST}|pad[_ ]token (?:is|was) (?:not|the same){_REST}"),
    _text("nccl_timeout", ("Timeout(ms)=", "Timeout at NCCL"), rf"Timeout at NCCL{_REST}"
                                                               rf"|Timeout\(ms\)=[0-9]{{1,12}}+\) ran for{_REST}"),
)  # fmt: skip

_LOSS_SCALE = re.compile(
    r"OVERFLOW!{0,1}+[^\n]{0,120}?(?:Attempted"
    r"|attempted) loss scale: (?P<old>[0-9.e+]{1,24}+)(?:, (?:but hysteresis[^\n]{0,80}"
    r"|reducing to (?P<new>[0-9.e+]{1,24}+)))?"
)
_COLLAPSED_SCALE = 1.0
_MANY_OVERFLOWS = 10

EXCEPTIONS = {
    "OutOfMemoryError": "oom", "AssertionError": "assertion", "NotImplementedError": "not_implemented",
    "ValueError": "value_error", "TypeError": "type_error", "KeyError": "key_error",
    "FileNotFoundError": "file_not_found",
    "ModuleNotFoundError": "missing_module", "ImportError": "import_error", "ConnectionError": "connection_error",
    "ConnectionRefusedError": "connection_error", "ConnectionResetError": "connection_error",
    "LocalEntryNotFoundError": "connection_error", "HFValidationError": "value_error",
    "RepositoryNotFoundError": "file_not_found",
    "ValidationError": "value_error", "DistBackendError": "nccl_error",
}  # fmt: skip


def scan(piece: Piece) -> Iterator[Signal]:
    """The first occurrence of everything `PATTERNS` knows in a log, and a loss scale that fell to nothing."""
    for entry in PATTERNS:
        match = find(entry, piece.text)
        if match is not None:
            yield Signal(kind=entry.kind, span=piece.span(match.start(), _trim(match)), detail=_detail(match))
    yield from _loss_scale(piece)


def find(entry: _Text, text: str) -> re.Match[str] | None:
    """The first place where ``entry`` matches, if any."""
    if not any(literal in text for literal in entry.literals):
        return None
    return entry.pattern.search(text)


def _trim(match: re.Match[str]) -> int:
    return match.end() - (len(match[0]) - len(match[0].rstrip()))


def _detail(match: re.Match[str]) -> str:
    return " ".join(match[0].split())[:200]


def _loss_scale(piece: Piece) -> Iterator[Signal]:
    """DeepSpeed skips a step at each overflow: a few at the start are how it finds its scale, ten in a row are not."""
    if "OVERFLOW" not in piece.text:
        return
    for count, match in enumerate(_LOSS_SCALE.finditer(piece.text), 1):
        scale = _number(match["new"] or match["old"])
        if count >= _MANY_OVERFLOWS or (scale is not None and scale <= _COLLAPSED_SCALE):
            detail = f"overflow number {count}, loss scale {scale if scale is not None else 'unreadable'}"
            yield Signal(
                kind="loss_scale_collapse", span=piece.span(match.start(), match.end()), value=scale, detail=detail
            )
            return


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def from_tracebacks(tracebacks: Sequence[Traceback]) -> Iterator[Signal]:
    """What each exception means. The message may mean more than its type (a `RuntimeError` that is out of memory)."""
    for one in tracebacks:
        short = one.exception.rsplit(".", 1)[-1]
        kinds = [EXCEPTIONS[short]] if short in EXCEPTIONS else []
        for entry in PATTERNS:
            if entry.kind not in kinds and find(entry, f"{short}: {one.message}") is not None:
                kinds.append(entry.kind)
        for kind in kinds:
            yield Signal(kind=kind, span=one.span, detail=f"{one.exception}: {one.message}"[:200])
