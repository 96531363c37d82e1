"""A question that leaves open what is wrong is about what the log shows."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.intent import query_text
from trainmedic.service.dialogue.request import Ask

GLOSSARY = load_glossary()

SCRIPT = (
    "import torch\nfrom transformers import AutoModelForCausalLM, TrainingArguments\n"
    "model = AutoModelForCausalLM.from_pretrained('m', torch_dtype=torch.float16)\n"
    "args = TrainingArguments(output_dir='o', learning_rate=1e-4, optim='adamw_torch', logging_steps=1)\n"
)
LOG = '{"step": 1, "loss": 4.1, "grad_norm": 1.0}\n{"step": 2, "loss": 0.0, "grad_norm": NaN}\n'
FILES = (Attachment(name="run.py", content=SCRIPT), Attachment(name="log.jsonl", content=LOG))
TRACE = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: bad batch\n'


def test_a_question_with_a_symptom_stays_as_it_is() -> None:
    assert query_text("loss is nan from step 2", parse("", FILES), GLOSSARY) == "loss is nan from step 2"


@every_case("question", ["", "why does my run fail?", "为什么训练失败了？"])
def test_an_open_question_is_about_what_the_log_shows(question: str) -> None:
    found = query_text(question, parse(question, FILES), GLOSSARY)
    assert found.startswith(question)
    assert "grad norm nan" in found


def test_what_ray_guesses_about_a_dead_worker_is_not_asked_about() -> None:
    guesses = (
        "There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory "
        "usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other "
        "unexpected errors."
    )
    question = f"verl hangs, then: the worker exits. {guesses} what now?"
    assert query_text(question, parse(question), GLOSSARY) == "verl hangs, then: the worker exits.  . what now?"


def test_the_root_exception_is_put_into_words() -> None:
    assert "ValueError: bad batch" in query_text("", parse("", (Attachment(name="x.log", content=TRACE),)), GLOSSARY)


def test_a_healthy_log_adds_nothing() -> None:
    healthy = "\n".join(f"{{'loss': {2 - n / 50}, 'grad_norm': 1.0, 'step': {n}}}" for n in range(1, 30))
    assert query_text("", parse("", (Attachment(name="x.log", content=healthy),)), GLOSSARY) == ""


@every_case(("question", "language"), [("", "en"), ("why does it fail?", "en"), ("为什么训练失败了？", "zh")])
def test_files_alone_are_diagnosed(question: str, language: str, knowledge_advisor: Advisor) -> None:
    answer = knowledge_advisor.ask(Ask(question=question, attachments=FILES))
    assert answer.verdict == "answered"
    assert answer.causes[0].case_id == "fp16-trainable-head-adam-eps-nan"
    assert answer.language == language


ASKED = "cuda out of memory in dpo, whatever I set"
BLOCKS = (
    "- `llamafactory` version: 0.9.2\n- PyTorch version: 2.6.0+cu124 (GPU)\n- Bitsandbytes version: 0.45.5",
    "model_name_or_path: Qwen/Qwen2.5-0.5B\nstage: dpo\nfinetuning_type: full\ndeepspeed: ds_z3_offload_config.json\n"
    "cutoff_len: 4096\noutput_dir: out",
    "llamafactory-cli train \\\n  --stage dpo \\\n  --model_name_or_path m \\\n  --dataset d \\\n  --output_dir o",
)


@every_case("block", BLOCKS)
def test_a_block_pasted_into_the_question_is_not_what_is_asked(block: str) -> None:
    question = f"{ASKED}\n\n{block}\n"
    assert query_text(question, parse(question), GLOSSARY).split() == ASKED.split()


def test_a_line_of_options_is_part_of_the_question() -> None:
    question = "training fails with nan:\ndeepspeed train.py --offload_param cpu"
    assert query_text(question, parse(question), GLOSSARY) == question


def test_a_question_that_is_a_paste_alone_is_kept() -> None:
    question = f"{BLOCKS[1]}\n"
    assert BLOCKS[1] in query_text(question, parse(question), GLOSSARY)
