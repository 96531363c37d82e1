"""Checks of single lines, and of tracebacks, that tell a cause by what stands in them."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import MOST, first, lines
from trainmedic.kb.engine.outcome import CLEAR, NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span

_MISMATCH = regex(
    r"size mismatch for (?P<name>\S{1,200}): copying a param with shape torch\.Size\(\[(?P<file>[0-9, ]{0,60})\]\)"
    r" from checkpoint, the shape in current model is torch\.Size\(\[(?P<model>[0-9, ]{0,60})\]\)"
)
_VOCABULARY = ("embed_tokens", "lm_head", "wte", "embed_in", "embed_out", "word_embeddings")
_NEW = regex(r"newly initialized: \[(?P<names>[^\]\n]{1,4000})")
_MISSING = regex(r"(?:lm_head|[\w.{}, ]*(?:embed_tokens|_proj|wte|c_attn))\.weight\s*\|\s*MISSING")
_COMPUTED = ("rotary", "inv_freq", "masked_bias", "attn.bias", "position_ids")
_BESIDE = ("mm_projector", "vision_tower", "vision_model", "image_newline", "resampler", "lora_")
"""Parts beside the language model, which LLaVA and its like load afterwards, and adapters, which begin at random."""
_KEY = regex(r"Could not find (?:response|instruction) key `?[^`\n]{0,80}`?")
LEAST = 2
"""One row without its marker may be a row that was cut; from here on the marker is the matter."""
_WORK = (
    *("Running tokenizer", "Tokenizing", "Converting format", "Map (num_proc=", "Generating train split"),
    *("Saving model checkpoint", "Packing", "Preprocessing"),
)
"""What one rank does while the others wait in a collective."""
_FIRST = regex(r"WorkNCCL\(SeqNum=1, OpType=\w+")
_BARRIER = regex(r"WorkNCCL\(SeqNum=\d+, OpType=(?:ALLREDUCE|BROADCAST), NumelIn=1,")
_LOADED = (
    ("Load from checkpoint folder:", regex(r"Load from checkpoint folder: \S*global_step_([0-9]{1,9})")),
    ("Resuming from", regex(r"Resuming from \S*global_step_([0-9]{1,9})")),
)
_CHOSEN = ("resume_path", "disable")
MOST_RUNS = 200
"""Runs of one log that are looked at; the last of them decides."""
_TOTAL = regex(r"Total optimization steps = (?P<steps>[0-9,]{1,15})")
_DONE = (
    ("Continuing training from global step", regex(r"Continuing training from global step (?P<steps>[0-9,]{1,15})")),
    (
        "Resuming training from checkpoint with epoch",
        regex(r"Resuming training from checkpoint with epoch [0-9]{1,9} and global step (?P<steps>[0-9,]{1,15})"),
    ),
)


def embedding_rows_differ(facts: Facts) -> Outcome:
    """Fires if only matrices of the vocabulary differ, in their rows. Other columns mean another base model."""
    for trace in facts.evidence.tracebacks:
        mismatches = list(_MISMATCH.finditer(trace.message))
        if mismatches and all(map(_rows_differ, mismatches)):
            return fires(*trace.places)
    return NOT_SHOWN


def _rows_differ(mismatch: re.Match[str]) -> bool:
    name = mismatch["name"]
    in_file, in_model = (mismatch[key].replace(" ", "").split(",") for key in ("file", "model"))
    vocabulary = "lora_" not in name and any(part in _VOCABULARY for part in name.split("."))
    return vocabulary and len(in_file) == len(in_model) == 2 and in_file[0] != in_model[0] and in_file[1] == in_model[1]


def language_model_newly_initialised(facts: Facts) -> Outcome:
    """Fires on a list with a learned weight in it, for a class that ends in ForCausalLM, in both wordings."""
    for span in lines(facts.evidence, "ForCausalLM were not initialized from the model checkpoint", _NEW):
        names = [name.strip(" '") for name in span.text.partition("[")[2].split(",")]
        learned = [name for name in names if name and not any(part in name for part in (*_COMPUTED, *_BESIDE))]
        if learned:
            return fires(span, name=learned[0], count=len(learned))
    for span in lines(facts.evidence, "MISSING", _MISSING):
        return fires(span, name=span.text.partition("|")[0].strip(), count="1 or more")
    return NOT_SHOWN


def response_key_not_found(facts: Facts) -> Outcome:
    """Fires from the second warning on: the completion collator of TRL before 0.20 could not find its marker."""
    texts = ("Could not find response key", "Could not find instruction key")
    warnings = [span for text in texts for span in lines(facts.evidence, text, _KEY)]
    if len(warnings) < LEAST:
        return NOT_SHOWN
    return fires(warnings[0], count=f"at least {MOST}" if len(warnings) >= MOST else len(warnings))


def first_collective_times_out(facts: Facts) -> Outcome:
    """Fires if nothing else explains why a rank did not come. Rows show that earlier groups did communicate."""
    failed = any("DistBackendError" not in trace.exception for trace in facts.evidence.tracebacks)
    if _work_of_one_rank(facts) or failed or facts.evidence.rows:
        return CLEAR
    span = first(facts.evidence, "SeqNum=1,", _FIRST)
    return NOT_SHOWN if span is None else fires(span)


def timeout_in_barrier(facts: Facts) -> Outcome:
    """Fires where a rank was busy with something long, or where the barrier is that of work that one process does."""
    for trace in facts.evidence.tracebacks:
        if "timeout" in trace.message.lower() and any(frame.endswith(" main_process_first") for frame in trace.frames):
            return fires(*trace.places)
    barrier = first(facts.evidence, "NumelIn=1,", _BARRIER)
    found = _work_of_one_rank(facts)
    if barrier is None or not found:
        return CLEAR
    before = [span for span in found if span.attachment == barrier.attachment and span.line < barrier.line]
    work = max(before, key=lambda span: span.line, default=found[0])
    since = (row.span for row in facts.evidence.rows if row.span.attachment == barrier.attachment)
    trained = before and any(work.line < span.line < barrier.line for span in since)
    return CLEAR if trained else fires(barrier, work)


def _work_of_one_rank(facts: Facts) -> list[Span]:
    return [span for text in _WORK for span in lines(facts.evidence, text)]


def resumed_by_itself(facts: Facts) -> Outcome:
    """Fires on the line about a loaded step unless the command chose how to resume."""
    if facts.option("trainer.resume_mode").value in _CHOSEN:
        return CLEAR
    for literal, pattern in _LOADED:
        span = first(facts.evidence, literal, pattern)
        match = pattern.search(span.text) if span is not None else None
        if span is not None and match is not None:
            return fires(span, step=match[1])
    return NOT_SHOWN


def resumed_at_the_end(facts: Facts) -> Outcome:
    """Fires where the step to continue from is not below the number planned by the same run of the log."""
    outcome = NOT_SHOWN
    totals = {span.attachment: span for span in lines(facts.evidence, "Total optimization steps", _TOTAL, MOST_RUNS)}
    for literal, pattern in _DONE:
        done = {span.attachment: span for span in lines(facts.evidence, literal, pattern, MOST_RUNS)}
        for name, reached in done.items():
            total = totals.get(name)
            if total is None or reached.line < total.line:
                continue
            outcome = _compared(total, reached)
            if outcome.value is True:
                return outcome
    return outcome


def _compared(total: Span, done: Span) -> Outcome:
    planned, reached = _steps(total.text), _steps(done.text)
    return CLEAR if reached < planned else fires(total, done, total=str(planned), step=str(reached))


def _steps(text: str) -> int:
    return int("0" + "".join(character for character in text.split()[-1] if character in "0123456789"))
