"""What a model writes is shown only as far as its sources bear it out."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from tests.service.values import both, case, finding
from tests.shipped import shipped_cases
from trainmedic.kb.frameworks.catalogue import is_option
from trainmedic.kb.model.case import Case, Refutation
from trainmedic.kb.model.report import Fix, Safety, Status
from trainmedic.kb.sentences import sentences
from trainmedic.service.llm.prompts import system_text
from trainmedic.service.llm.prompts.sources import Source, case_text, more_text
from trainmedic.service.llm.verify import Denial, Grounding, Verification, content, denials_of, verify
from trainmedic.service.llm.verify.against import advises, changed, claimed, clauses, denied, line_denied
from trainmedic.service.llm.verify.blocks import blocks, complete
from trainmedic.service.llm.verify.check import LABEL
from trainmedic.service.llm.verify.words import REDACTED, names, occurs, spellings, visible

CASES = [case for case in shipped_cases().cases if case.status == "published"]
CAUSE = (
    "fp16 gradients underflow: adam_epsilon 1e-8 rounds to zero in half precision, so the update divides by zero and "
    "the weights become NaN in transformers 4.46.2."
)
CAUSE_ZH = "半精度下 adam_epsilon 1e-8 会下溢为零，更新时除以零，权重随即变成 NaN。"
PASTE = "why?\npython train.py --torch_dtype float16 --lora_r 32 --max_length 2048\n"
SOURCES = (
    Source(
        marker=1, kind="case", id="fp16-nan", title="half precision", text=CAUSE, url="https://example.org/thread/1"
    ),
    Source(
        marker=2,
        kind="rule",
        id="beta-rule",
        title="beta is too large",
        text="beta 0.9 keeps the policy near the reference.",
    ),
    Source(marker=3, kind="input", id="train.sh:12:3", title="train.sh:12:3", text="--torch_dtype float16"),
)
GROUND = Grounding(sources=SOURCES, corpus=PASTE, known=is_option, protected=(system_text(),))
CHINESE = Grounding(
    sources=(Source(marker=1, kind="case", id="fp16-nan", title="半精度", text=CAUSE_ZH),),
    corpus=PASTE,
    known=is_option,
)


def against(*claims: str, options: Iterable[Denial] = ()) -> Grounding:
    found = tuple(denial for claim in claims for denial in claimed(claim))
    return Grounding(sources=SOURCES, corpus=PASTE, known=is_option, denials=(*found, *options))


def english(draft: str, ground: Grounding = GROUND) -> Verification:
    return verify(draft, ground, "en")


# --- sentences and their sources -------------------------------------------------------------------------------------


def test_a_marker_stays_where_its_source_bears_the_sentence_out() -> None:
    got = english("The update divides by zero in half precision [1].")
    assert got.text == "The update divides by zero in half precision. [1]"
    assert got.citations == (1,)
    assert got.stats["cited"] == got.stats["kept"] == got.stats["markers"] == 1


def test_a_wrong_marker_is_replaced_by_that_of_the_source_that_says_so() -> None:
    got = english("The update divides by zero in half precision [2].")
    assert got.text.endswith("half precision. [1]")
    assert (got.stats["cited"], got.stats["kept"]) == (1, 0)


def test_a_marker_of_one_case_goes_where_another_case_clearly_says_more() -> None:
    other = Source(
        marker=4, kind="case", id="zero-lr", title="no update", text="The weights keep their value: the update is zero."
    )
    ground = Grounding(sources=(*SOURCES, other), corpus=PASTE)
    said = "The update divides by zero and the weights become NaN"
    assert english(f"{said} [4].", ground).citations == (1,)
    assert english(f"{said} [1].", ground).citations == (1,)
    assert english("The weights keep their value since the update is zero [4].", ground).citations == (4,)
    assert english("The update is zero for all the weights [1][4].", ground).citations == (1, 4)


def test_a_sentence_without_a_marker_gets_one_where_a_source_says_it() -> None:
    assert english("The weights become NaN since the update divides by zero.").citations == (1,)


def test_what_no_source_says_is_labelled_as_the_models_inference() -> None:
    got = english("Perhaps your neighbour's cat walked over the keyboard [1].")
    assert got.text == f"Perhaps your neighbour's cat walked over the keyboard. {LABEL['en']}"
    assert (got.stats["inferred"], got.stats["cited"], got.citations) == (1, 0, ())


def test_without_any_source_everything_is_inference() -> None:
    got = english("The update divides by zero [1].", Grounding(sources=()))
    assert got.text == f"The update divides by zero. {LABEL['en']}"
    assert got.stats["unknown_markers"] == 1


def test_markers_of_no_source_are_removed_and_counted() -> None:
    got = english("The update divides by zero in half precision [99][1], [7, 1].")
    assert "[99]" not in got.text
    assert got.text.endswith("[1]")
    assert got.stats["unknown_markers"] == 2


@every_case("group", ["[1, 3]", "[1][3]", "[1] [3]", "[1，3]", "[1、3]"])
def test_markers_in_groups_are_read(group: str) -> None:
    got = english(f"`--torch_dtype float16` makes adam_epsilon 1e-8 round to zero in half precision {group}.")
    assert got.text.endswith("[1][3]")
    assert got.citations == (1, 3)


def test_a_pasted_place_is_borne_out_by_a_sentence_that_holds_it() -> None:
    got = english("Your launch script asks for half weights through its option `--torch_dtype float16` there [3].")
    assert got.citations == (3,)


def test_a_source_with_none_of_the_names_must_carry_the_sentence_by_its_words() -> None:
    words = "beta keeps everything close, whatever `--lora_r 32` and `--max_length 2048` were chosen earlier"
    assert english(f"{words} [2].").text.endswith(LABEL["en"])
    assert english("beta 0.9 keeps everything somewhere close to wherever it started before [2].").citations == (2,)


def test_citations_stand_in_the_order_of_first_use() -> None:
    got = english(
        "A beta of 0.9 keeps the policy near the reference [2]. The update divides by zero in half precision [1]."
    )
    assert got.citations == (2, 1)


def test_brackets_in_code_are_no_markers() -> None:
    got = english("The update `weights[0]` divides by zero in half precision [1].")
    assert "`weights[0]`" in got.text
    assert got.stats["unknown_markers"] == 0


def test_chinese_sentences_are_resolved_like_english_ones() -> None:
    got = verify("更新时除以零，权重变成 NaN[1]。[1]可能是邻居家的猫踩了键盘。", CHINESE, "zh")
    assert got.text == f"更新时除以零，权重变成 NaN。 [1] 可能是邻居家的猫踩了键盘。 {LABEL['zh']}"
    assert (got.stats["sentences"], got.stats["inferred"]) == (2, 1)


def test_marks_alone_say_nothing() -> None:
    assert english("— [1]").text == "—"
    assert english("[1]").text == ""
    assert english("***\n\n---").stats["sentences"] == 0


# --- names and numbers -----------------------------------------------------------------------------------------------


@every_case(
    ("sentence", "flagged"),
    [
        ("Set `--magic_fix_everything` and rerun.", ["--magic_fix_everything"]),
        ("Set --super-loss-guard to get rid of it.", ["--super-loss-guard"]),
        ("Use magic_fix_everything here.", ["magic_fix_everything"]),
        ("It is gone in transformers 9.99.1.", ["9.99.1"]), ("It is gone in v9.99.", ["v9.99"]),
        ("It needs 3.7e-9 here.", ["3.7e-9"]), ("Set it to 4096 and go on.", ["4096"]),
        ("Set it to 1,048,576 then.", ["1048576"]), ("Look at `frobnicate` too.", ["frobnicate"]),
        ("Call trainer.fix_it once.", ["trainer.fix_it"]),
        ("把magic_fix_everything设置为4096。", ["magic_fix_everything", "4096"]),
        ("在transformers的9.99.1版本中修复。", ["9.99.1"]),
        ("See https://evil.example/x for it.", ["https://evil.example/x"]),
    ],
)  # fmt: skip
def test_what_stands_nowhere_is_flagged(sentence: str, flagged: list[str]) -> None:
    got = english(sentence)
    assert list(got.flagged) == flagged
    assert got.stats["flagged"] == len(flagged)
    assert all(f"`{name}`" in got.text for name in flagged)


@every_case(
    "sentence",
    [
        "It runs on 2 GPUs.", "It runs on 16 GPUs.", "Look at 10 steps.", "About 50 % of it.", "看 20 步就够了。",
        "1. The first\n2. The second\n12. The twelfth", "Labels of -100 are ignored.",
        "You wrote --lora_r 32 and --max_length 2048.", "You wrote `--max_length 2048`, that is 2,048 tokens.",
        "transformers 4.46 has it.", "transformers==4.46.2 has it.", "transformers 4.46.x has it.",
        "adam_epsilon is 1e-08 or 0.00000001 or 1.0e-8.", "Set `--learning_rate` or gradient_accumulation_steps.",
        "This is e.g. so, i.e. like that.", "`true`, `none` and `x` are values.", "See https://example.org/thread/1.",
        "The flash-attn-like logits/chosen and_ _or_ state-of-the-art GPT.",
    ],
)  # fmt: skip
def test_what_stands_somewhere_or_is_ordinary_is_not(sentence: str) -> None:
    assert english(sentence).flagged == ()


def test_numbers_stand_only_where_they_stand_whole() -> None:
    assert not occurs("1.2", "11.25 and 0.1.2")
    assert occurs("4.46", "transformers 4.46.2")
    assert not occurs("4.4", "transformers 4.46.2")
    assert occurs("micro-batch", "the micro_batch")
    assert not occurs("beta", "alphabeta")
    assert not occurs("--", "anything")
    assert list(spellings("0.0"))
    assert "inf" not in list(spellings("1e999"))


def test_names_are_found_in_headings_and_code_blocks_too() -> None:
    got = english("## Use magic_fix_everything\n\n```bash\npython train.py --other_magic_thing 1\n```")
    assert got.flagged == ("magic_fix_everything", "--other_magic_thing")


# --- what must not be recommended ------------------------------------------------------------------------------------

LOWER = "Lower the learning rate."
LOWER_ZH = "把学习率调低。"


@every_case(
    "sentence",
    [
        "Lower the learning rate.", "Lower the LR to 1e-7 and rerun.",
        "You should reduce the learning rate first [1].", "I recommend lowering the learning rate.",
        "Try to decrease learning_rate.", "If that does not help, lower the learning rate.",
        "The learning rate should be reduced, not the batch.", "A smaller learning rate fixes it.",
        "Then simply reduce the learning rate, which stabilises it.", "- **Reduce the learning rate.**",
        "## Reduce the learning rate", "> Reduce the learning rate",
    ],
)  # fmt: skip
def test_a_sentence_that_recommends_what_is_refuted_is_withdrawn(sentence: str) -> None:
    got = english(sentence, against(LOWER))
    assert got.text in ("", "-", ">")
    assert got.stats["withdrawn"] == 1


@every_case(
    "sentence",
    [
        "Lowering the learning rate does not help.", "Do not lower the learning rate.",
        "You could lower the learning rate, but it does not help.",
        "If you lower the learning rate, the NaN comes later.", "The learning rate is not the cause.",
        "A high learning rate can make a loss diverge.", "Raise the learning rate.",
        "You lowered the learning rate already.", "Set the weights to bfloat16.",
        "The rate at which it grows is harmless.",
    ],
)  # fmt: skip
def test_a_sentence_that_does_not_recommend_it_stays(sentence: str) -> None:
    assert english(sentence, against(LOWER)).withdrawn == ()


@every_case(
    "sentence",
    [
        "把学习率调低。", "建议降低学习率。", "可以尝试降低学习率到 1e-7。", "应当降低lr。",
        "如果仍然不行，请降低学习率。", "学习率应降低。",
    ],
)  # fmt: skip
def test_chinese_advice_that_is_refuted_is_withdrawn(sentence: str) -> None:
    assert verify(sentence, against(LOWER_ZH), "zh").stats["withdrawn"] == 1


@every_case(
    "sentence",
    [
        "降低学习率没有用。", "不要降低学习率。", "可以降低学习率，但这不能解决问题。",
        "如果降低学习率，只是晚一点出现。", "你已经调低了学习率。", "学习率偏大会导致发散。",
        "即使降低学习率也无济于事。", "请提高学习率。",
    ],
)  # fmt: skip
def test_chinese_sentences_that_do_not_recommend_it_stay(sentence: str) -> None:
    assert verify(sentence, against(LOWER_ZH), "zh").withdrawn == ()


def test_the_numbers_of_a_claim_must_be_there() -> None:
    ground = against("Set `find_unused_parameters=True`.", "Use a batch of 8 samples.")
    assert english("Set `find_unused_parameters=True` in the launcher.", ground).stats["withdrawn"] == 1
    assert english("Set `find_unused_parameters=False` in the launcher.", ground).withdrawn == ()
    assert english("Use a batch of 16 samples.", ground).withdrawn == ()


def test_a_claim_that_recommends_nothing_is_one_as_a_whole() -> None:
    assert [denial.words for denial in claimed("The labels are swapped.")] == [content("labels swapped")]
    assert list(claimed("…")) == []
    halve = next(iter(claimed("The learning rate is too high, halve it.")))
    assert halve.words == content("learning rate high")


@every_case("language", ["en", "zh"])
def test_what_a_case_says_itself_is_hardly_ever_withdrawn_and_what_it_refutes_nearly_always(language: str) -> None:
    said, withdrawn, claims, missed = 0, [], 0, []
    for one in CASES:
        denials = denials_of([one], [], language)
        texts = [*(one.section(name, language) for name in ("cause", "fix", "confirm"))]
        texts += [each.why.get(language) for each in one.refutations]
        for piece in (piece for text in texts for piece in blocks(text) if piece.kind == "text"):
            for sentence in sentences(piece.body):
                said += 1
                withdrawn += [f"{one.id}: {sentence}"] * denied(sentence, denials)
        for each in one.refutations:
            if any(advises(part) for part in clauses(each.claim.get(language))):
                claims += 1
                missed += [f"{one.id}: {each.claim.get(language)}"] * (not denied(each.claim.get(language), denials))
    assert len(withdrawn) <= said * 0.001, withdrawn
    assert len(missed) <= claims * 0.05, missed


def refuting(claim: str, fix: str = "Upgrade it.", id: str = "case-a") -> Case:
    sections = {language: {"cause": "It is so.", "fix": fix, "confirm": ""} for language in ("en", "zh")}
    refutations = (Refutation(claim=both(claim), why=both("It stays.")),)
    return case(sections=sections, refutations=refutations, id=id)


def test_a_cases_own_advice_is_not_taken_for_the_claim_that_it_refutes() -> None:
    claim = "Set `lora_r 8` in the adapter and forget the rank."
    fix = "Set `lora_r 8` in the adapter as well."
    denials = denials_of([refuting(claim, fix)], [], "en")
    assert denied("Set `lora_r 8` in the adapter and forget the rank.", denials)
    assert not denied(fix, denials)
    assert denied(fix, denials_of([refuting(claim)], [], "en"))
    same = denials_of([refuting(LOWER, "If that is not enough: lower the learning rate too.")], [], "en")
    assert denied(LOWER, same), "what says every word of it is still that claim"


def test_what_another_case_refutes_is_nothing_against_the_advice_of_the_first() -> None:
    advises_it, refutes_it = refuting("Use more GPUs.", LOWER), refuting(LOWER, id="case-b")
    assert not denied(LOWER, denials_of([advises_it, refutes_it], [], "en"))
    assert not denied(LOWER, denials_of([advises_it], [], "en", also=[refutes_it]))
    assert denied(LOWER, denials_of([refutes_it, advises_it], [], "en"))
    assert denied("Use more GPUs.", denials_of([advises_it, refutes_it], [], "en"))


def test_a_case_that_is_only_read_refutes_but_does_not_say_that_something_is_wrong() -> None:
    denials = denials_of([], [], "en", also=[refuting(LOWER)])
    assert denied(LOWER, denials)
    assert not denied("Your run is healthy.", denials)


# --- what contradicts a finding --------------------------------------------------------------------------------------

GONE = Denial(option="vanilla_loss")
SET = Denial(option="torch_dtype", values=frozenset({"bfloat16"}))
ON = Denial(option="bf16", values=frozenset({"true"}))


@every_case(
    "sentence",
    [
        "Add `--vanilla_loss` to the command.", "Keep `--vanilla_loss` as it is.", "You should enable vanilla_loss.",
        "建议保留 `--vanilla_loss`。", "请在命令里加上vanilla_loss。", "`--vanilla_loss` is fine here.",
        "The flag vanilla-loss is not the cause.", "`--vanilla_loss` 没有问题。", "Set `--torch_dtype float32`.",
        "Set `--torch_dtype` to `float16`.", "Change torch_dtype from float16 to float64.",
        "把 `torch_dtype` 改成 float16。", "Keep `torch_dtype=float16` then.", "Remove `--bf16` from it.",
        "Set `bf16: false` there.", "`--bf16` is unrelated.",
    ],
)  # fmt: skip
def test_a_sentence_that_contradicts_a_finding_is_withdrawn(sentence: str) -> None:
    assert english(sentence, against(options=(GONE, SET, ON))).stats["withdrawn"] == 1


@every_case(
    "sentence",
    [
        "Remove `--vanilla_loss` from the command.", "Use the loss without `--vanilla_loss`.",
        "Do not add `--vanilla_loss`.", "Your script uses `--vanilla_loss`, which divides by zero.",
        "If you keep `--vanilla_loss`, the loss stays NaN.", "Upgrade openrlhf and keep `--vanilla_loss`.",
        "Set `--vanilla_loss false`.", "请去掉 `--vanilla_loss`。", "脚本里启用了 `--vanilla_loss`，会导致 NaN。",
        "Without `--vanilla_loss` the loss is fine.", "If `--vanilla_loss` is fine for you, go on.",
        "Set `--torch_dtype bfloat16`.", "Change `torch_dtype` from float16 to bfloat16.",
        "Set torch_dtype to the type of the weights.", "Add `--bf16` and rerun.", "Set `bf16` to 1.",
        "Set `bf16=true`.", "`--vanilla_loss_weight` is fine.",
    ],
)  # fmt: skip
def test_a_sentence_that_says_what_the_finding_says_stays(sentence: str) -> None:
    assert english(sentence, against(options=(GONE, SET, ON))).withdrawn == ()


def test_equal_numbers_are_the_same_value() -> None:
    ground = against(options=(Denial(option="lr", values=frozenset({"1e-6", "auto"})),))
    assert english("Set `--lr 0.000001` then.", ground).withdrawn == ()
    assert english("Set `--lr 2e-6` then.", ground).stats["withdrawn"] == 1
    assert english("Set `--lr cosine2` then.", ground).stats["withdrawn"] == 1


@every_case("line", ["--vanilla_loss \\", "  --torch_dtype float16", "torch_dtype: float16", "vanilla_loss: true"])
def test_a_code_block_that_contradicts_a_finding_is_withdrawn(line: str) -> None:
    got = english(f"```bash\n{line}\n```", against(options=(GONE, SET)))
    assert got.text == ""
    assert got.stats["withdrawn"] == 1


@every_case(
    "line",
    [
        "-  --vanilla_loss", "# --vanilla_loss", "--torch_dtype bfloat16", "vanilla_loss: false", "--beta 0.1",
        "torch_dtype", "",
    ],
)  # fmt: skip
def test_a_code_block_that_does_not_stays(line: str) -> None:
    assert not line_denied(line, (GONE, SET, *claimed(LOWER)))


HEALTH = denials_of([case()], [], "en")


@every_case(
    "sentence",
    [
        "The verdict is no_fault.", "Your run is healthy.", "OK, everything looks fine.", "一切正常。",
        "训练正常，无需改动。",
    ],
)  # fmt: skip
def test_where_something_is_wrong_no_sentence_says_that_nothing_is(sentence: str) -> None:
    assert english(sentence, Grounding(sources=SOURCES, denials=HEALTH)).stats["withdrawn"] == 1
    healthy = denials_of([case(kind="artefact")], [], "en")
    assert english(sentence, Grounding(sources=SOURCES, denials=healthy)).withdrawn == ()


@every_case(
    "sentence",
    [
        "If everything is fine afterwards, go on.", "The verdict is not no_fault.", "The loss is fine.",
        "这并不是一切正常。", "把它关掉后训练正常。",
    ],
)  # fmt: skip
def test_that_something_would_be_fine_may_be_said(sentence: str) -> None:
    assert english(sentence, Grounding(sources=SOURCES, denials=HEALTH)).withdrawn == ()


PATCH = """--- a/train.sh
+++ b/train.sh
@@ -1,5 +1,5 @@
 deepspeed --module openrlhf.cli.train_kto \\
-   --lora_r 32 \\
-   --torch_dtype float16 \\
-   --vanilla_loss
+   --lora_r 32 \\
+   --torch_dtype bfloat16 \\
+   --bf16
"""


def test_a_patch_tells_what_goes_and_what_has_which_value() -> None:
    assert changed(PATCH) == {"vanilla_loss": "", "torch_dtype": "bfloat16", "bf16": "true"}
    assert changed("-python t.py --a 1 --b\n+python t.py --a 2\n") == {"b": "", "a": "2"}
    assert changed('-fp16: true\n+fp16: false\n-  "stage": 3,\n+  "stage": 2,\n') == {"fp16": "false", "stage": "2"}
    assert changed("") == {}


def test_denials_come_from_refutations_and_patches() -> None:
    fixes = (
        Fix(text=both("set bfloat16"), safety=Safety.SAFE, patch=PATCH),
        Fix(text=both("or load float32"), safety=Safety.DISPLAY),
    )
    denials = denials_of([case()], [finding(status=Status.FIRED, fixes=fixes)], "en")
    ground = Grounding(sources=SOURCES, denials=denials)
    assert english("Lower the learning rate.", ground).stats["withdrawn"] == 1
    assert english("Add `--vanilla_loss`.", ground).stats["withdrawn"] == 1
    assert english("Set `--torch_dtype float16`.", ground).stats["withdrawn"] == 1
    assert english("Set `--torch_dtype float32`, as the finding says too.", ground).withdrawn == ()


# --- what must not show ----------------------------------------------------------------------------------------------


def leaks(text: str) -> bool:
    def words(one: str) -> list[str]:
        return re.findall(r"[a-z]+", one.lower())

    system, shown = words(system_text()), " ".join(words(text))
    return any(" ".join(system[n : n + 8]) in shown for n in range(len(system) - 7))


ECHO = system_text()


@every_case(
    "draft",
    [
        ECHO, ECHO.upper(), ECHO.replace("\n", " "), ECHO.replace(" ", " [1] "),
        "\n".join(f"- {word}" for word in ECHO.split()), "\n\n".join(ECHO.split()),
        "".join(f"{letter}\u200b" for letter in ECHO), f"```\n{ECHO}\n```", f"```\n{ECHO}", f"> {ECHO}",
        "| " + " | ".join(ECHO.split()) + " |", f"# {ECHO[:110]}", ECHO.replace(" ", "_"), ECHO.replace(". ", "! "),
    ],
)  # fmt: skip
def test_no_passage_of_the_system_prompt_shows_in_whatever_form(draft: str) -> None:
    got = english(draft)
    assert not leaks(got.text)
    assert got.stats["leaked"] >= 1
    assert got.stats["withdrawn"] == 0
    assert REDACTED not in got.text
    assert not any(leaks(text) or REDACTED in text for text in got.withdrawn)


def test_a_protected_chinese_text_is_kept_back_too() -> None:
    ground = Grounding(sources=(), protected=("你只能使用下面编号的来源回答问题。",))
    assert verify("好的：你只能使用下面编号的来源。", ground, "zh").text == ""


def test_seven_words_of_it_are_no_passage() -> None:
    assert english("Use only the numbered sources and the paste.").withdrawn == ()


def test_what_cannot_be_seen_is_removed() -> None:
    assert visible("a\u200bb\u202ec\x00d\ue000\ud800\r\ne\rf\u2028g\t") == "abcd\ne\nf\ng\t"
    assert visible("plain") == "plain"


def test_links_pictures_tags_and_chat_tokens_are_made_harmless() -> None:
    got = english(
        "![x](https://evil.example/?q=1) [click](https://evil.example/a) <script>alert(1)</script> "
        "<|im_start|>system www.evil.example and [thread](https://example.org/thread/1) [1](https://evil.example)"
    )
    assert "](https://evil" not in got.text
    assert "<" not in got.text
    assert "im_start" not in got.text
    assert "[thread](https://example.org/thread/1)" in got.text
    assert "`www.evil.example`" in got.text
    assert "<b>" in english("`<b>` divides by zero in half precision [1].").text


# --- Markdown --------------------------------------------------------------------------------------------------------


def test_headings_lists_quotes_and_tables_keep_their_form() -> None:
    draft = (
        "## Why\n**Cause**\nThe update divides by zero\nin half precision [1].\n\n"
        "- The update divides by zero in half precision [1].\n"
        "  1. The weights become NaN [1].\n     still NaN weights\n"
        "> The update divides by zero [1].\n\n| option | effect |\n|---|---|\n| adam_epsilon | rounds to zero [1] |\n"
    )
    assert english(draft).text == (
        "## Why\n**Cause**\nThe update divides by zero in half precision. [1]\n\n"
        "- The update divides by zero in half precision. [1]\n  1. The weights become NaN. [1] still NaN weights [1]\n"
        "> The update divides by zero. [1]\n\n"
        f"| option | effect {LABEL['en']} |\n|---|---|\n| adam_epsilon | rounds to zero [1] |"
    )
    assert english("| adam_epsilon | rounds to zero [1]").text == "| adam_epsilon | rounds to zero [1]"


def test_a_code_block_stays_as_it_is_and_one_never_closed_is_closed() -> None:
    block = "```bash\npython train.py --lora_r 32  # [9]\n```"
    assert english(block).text == block
    assert english("~~~\nx\n```\ny").text == "~~~\nx\n```\ny\n~~~"
    assert english("> ```\n> x\n> ```").text == "> ```\n> x\n> ```"
    assert "```x```" in english("```x``` divides by zero in half precision [1].").text


@every_case(
    ("text", "count"),
    [
        ("It is 1e-6. Then it is NaN.", 2), ("Some (e.g. Qwen, i.e. Qwen2 vs. Gemma) fail.", 1),
        ("Version 4.46.2 of trl v0.9.6 in train.sh and config.json.", 1), ("`a. B` is code. So is `c! D`.", 2),
        ("Really?! Yes. [1] And [2]. More [3][4].", 4), ('He said "no." Then "yes."', 2), ("Wait... it goes on.", 2),
        ("更新除以零。[1]然后变成 NaN！对吗？“是。”好", 5), ("loss is NaN. bf16 avoids it.", 2), ("no end", 1),
        ("", 0),
    ],
)  # fmt: skip
def test_sentences_end_where_they_end(text: str, count: int) -> None:
    assert len(list(sentences(text))) == count


def test_chinese_lines_of_a_paragraph_are_joined_without_a_blank() -> None:
    assert [piece.body for piece in blocks("更新时\n除以零\nand then")] == ["更新时除以零 and then"]


def test_names_of_urls_are_not_names() -> None:
    assert names("see https://a.example/magic_thing") == []


def test_an_empty_draft_gives_an_empty_text() -> None:
    got = english("")
    assert (got.text, got.citations, got.flagged, got.withdrawn) == ("", (), (), ())
    assert set(got.stats.values()) == {0}


# --- anything at all -------------------------------------------------------------------------------------------------

FRAGMENTS = (
    "The update divides by zero", "[1]", "[1, 2]", "[99]", "[", "]", "(", ")", "![", "](", "http://x.y", "`", "```",
    "\n", "\n\n", "- ", "1. ", "> ", "| a |", "|---|", "# ", "**", ". ", "。", "！", "，", "e.g. ", "1e-6", "4.46.2",
    "--beta ", "lower the learning rate", "降低学习率", "不", "但", "if ", "add --vanilla_loss",
    "set torch_dtype to float16", "<b>", "<|im_end|>", "\u200b", "\x00", "\ud800", "~~~", "  ", "\t",
    "use only the numbered sources and the findings below",
)  # fmt: skip
DRAFTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=8), max_size=30).map("".join)
HARD = Grounding(
    sources=SOURCES,
    corpus=PASTE,
    denials=(*claimed(LOWER), *claimed(LOWER_ZH), GONE, SET, ON),
    protected=(system_text(),),
)


@given(DRAFTS, st.sampled_from(["en", "zh"]))
def test_any_draft_is_verified_the_same_way_twice(draft: str, language: str) -> None:
    got = verify(draft, HARD, language)
    assert verify(draft, HARD, language) == got
    assert set(got.citations) <= {1, 2, 3}
    assert got.stats["cited"] + got.stats["inferred"] == got.stats["sentences"]
    assert got.stats["kept"] <= got.stats["markers"]
    got.text.encode()


@pytest.mark.slow
@every_case(
    "piece",
    [
        "a", " ", ".", "[", "[1]", "`", "。", "-", "*", "#", "|", ">", "(", "<", "\n", "- ", "1. ", "[1, ", "](",
        "not ", "set ", "降", "lower the learning rate, ", "use `--vanilla_loss` ", "\u200b", "e.g. ", "1,000",
        "http://", "=", "'", "The update divides by zero [1]. ", "如果", "magic_thing_", "--", "a.b.", "\t",
    ],
)  # fmt: skip
def test_work_grows_with_the_length_of_the_draft_and_no_faster(piece: str) -> None:
    draft = (piece * (30_000 // len(piece) + 1))[:30_000]
    # Ten times the length is ten times the work, and a hundred times if the work grows with the square. A slow moment
    # of the machine does not happen three times in a row.
    assert any(work(draft) <= 40 * work(draft[:3_000]) + 20_000_000 for _ in range(3))


def work(draft: str) -> int:
    """What verifying takes, in nanoseconds of this thread alone."""
    started = time.thread_time_ns()
    verify(draft, HARD, "en")
    return time.thread_time_ns() - started


def test_the_text_of_a_case_is_borne_out_by_that_case() -> None:
    cited = total = 0
    for one in CASES[:80]:
        text = f"{case_text(one, 'en')}\n{more_text(one, 'en')}"
        ground = Grounding(sources=(Source(marker=1, kind="case", id=one.id, title=one.title.en, text=text),))
        got = english(text, ground)
        cited, total = cited + got.stats["cited"], total + got.stats["sentences"]
    assert cited == total > 500


# --- a text that broke off ------------------------------------------------------------------------------------------


@every_case(
    ("draft", "left"),
    [
        ("It overflows [1]. Lower the", "It overflows [1]."),
        ("It overflows [1]. Lower it [2].", "It overflows [1]. Lower it [2]."),
        ("先溢出[1]。然后把学习", "先溢出[1]。"),
        ("It overflows in transformers 4.46.2 [1]. Upgrade to 4.", "It overflows in transformers 4.46.2 [1]."),
        ("It overflows [1].\n\nThen it", "It overflows [1]."),
        ("Two things:\n- lower it\n- keep `a.b`", "Two things:\n- lower it"),
        ("It overflows [1].\n\n```\n--beta 0.1\n", "It overflows [1]."),
        ("See:\n```\n--beta 0.1.\n```\nThen", "See:\n```\n--beta 0.1.\n```"),
        ("| a | b |\n| - | - |\n| 1. | 2", "| a | b |\n| - | - |"),
        ("Use e.g.", ""),
        ("", ""),
    ],
)
def test_of_a_text_that_broke_off_the_unfinished_end_is_dropped(draft: str, left: str) -> None:
    assert complete(draft) == left
