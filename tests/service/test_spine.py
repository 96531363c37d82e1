"""An answer is acted on in ten seconds: what leads it, how much there is to read, and in one language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.every_case import every_case
from tests.incidents import INCIDENTS, Incident
from trainmedic.kb.fences import fence_after
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, DifferentialNode, Section
from trainmedic.service.answer.text import LEAD_WORDS, UNCOUNTED, fold, split, without_tables, word_count
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.chat.texts import examples

LANGUAGES = ("en", "zh")
BROKEN_LOG = "{'loss': 1.2, 'grad_norm': 1.1}\n{'loss': nan, 'grad_norm': nan}\n"
QUESTIONS = {
    "en": ("loss is nan", "CUDA out of memory at step 300, qwen2.5 7b full finetune zero3", "GRPO reward collapses"),
    "zh": ("loss 变成 nan 了", "全参微调 qwen2.5 7b，zero3，第 300 步显存不足", "GRPO 的 reward 崩了"),
}
FAULTY = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: full
template: llama3
adam_epsilon: 0.1
bf16: true
dataset: mine
output_dir: out
"""
WORDS = re.compile(r"(?<![\w./-])[A-Za-z]+(?:,? [A-Za-z]+){2,}(?![\w/-])")
"""Three or more English words."""
SMALL = frozenset(
    {"a", "an", "and", "are", "for", "from", "if", "in", "is", "it", "not", "of", "or", "the", "to", "with"}
)
"""Words of sentences, which no list of names and options has."""


@pytest.fixture
def advisor(knowledge_advisor: Advisor) -> Advisor:
    """The shared one: no conversation is continued here."""
    return knowledge_advisor


def asked(advisor: Advisor, question: str, *files: Attachment, language: str = "auto") -> Answer:
    return advisor.ask(Ask(question=question, attachments=files, language=language))  # type: ignore[arg-type]


@cache
def answers(advisor: Advisor, language: str) -> tuple[Answer, ...]:
    return tuple(_answers(advisor, language))


def _answers(advisor: Advisor, language: str) -> Iterator[Answer]:
    for incident in INCIDENTS:
        yield asked(advisor, incident.zh if language == "zh" else incident.en, *incident.files, language=language)
    for example in examples("en"):
        yield asked(advisor, example.question, *example.files, language=language)
    for question in QUESTIONS[language]:
        yield asked(advisor, question, language=language)
        yield asked(advisor, question, Attachment(name="train.log", content=BROKEN_LOG), language=language)
    yield asked(advisor, "", Attachment(name="sft.yaml", content=FAULTY), language=language)


def lead(answer: Answer) -> list[Section]:
    return [section for section in answer.sections if not section.folded and section.kind not in UNCOUNTED]


def prose(text: str) -> str:
    """A text without code, quotations and error messages."""
    lines, fence = [], ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        if not before and not fence:
            lines.append(line)
    return re.sub(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|'[^']*'|Error: [\w ]+", " ", "\n".join(lines))


def texts(answer: Answer) -> Iterator[str]:
    yield answer.answer
    yield from answer.notices
    yield from (cause.title for cause in answer.causes)
    for finding in answer.findings:
        yield from (finding.title, finding.message, finding.fix)
    for missing in answer.missing:
        yield from (missing.ask, missing.why)
    for node in answer.differential.nodes:
        yield from of_node(node)


def of_node(node: DifferentialNode) -> Iterator[str]:
    yield node.title
    for statement in (*node.supports, *node.contradicts, *node.excluded_by):
        yield statement.text
    for child in node.nodes:
        yield from of_node(child)


@every_case("language", LANGUAGES)
def test_what_leads_an_answer_has_at_most_120_words(advisor: Advisor, language: str) -> None:
    sizes = {
        answer.answer[:200]: sum(word_count(part.markdown) for part in lead(answer))
        for answer in answers(advisor, language)
    }
    assert len(sizes) > 10
    assert {text: size for text, size in sizes.items() if size > LEAD_WORDS} == {}


@every_case("incident", [i for i in INCIDENTS if i.patch_clears])
@every_case("language", LANGUAGES)
def test_verdict_cause_patch_and_verification_lead_in_this_order(
    advisor: Advisor, incident: Incident, language: str
) -> None:
    answer = asked(advisor, incident.zh if language == "zh" else incident.en, *incident.files, language=language)
    kinds = [section.kind for section in lead(answer)]
    assert kinds == ["lead", "confidence", "because", "diff", "change", "places", "verify"]
    places = next(section for section in answer.sections if section.kind == "places")
    assert "{}:{}:{}".format(*incident.place) in places.body
    assert {"cause", "refuted"} <= {section.kind for section in answer.sections if section.folded}


@every_case("incident", [i for i in INCIDENTS if i.appears])
@every_case("language", LANGUAGES)
def test_what_a_patch_brings_up_is_named_by_its_title_with_a_link(
    advisor: Advisor, incident: Incident, language: str
) -> None:
    answer = asked(advisor, incident.zh if language == "zh" else incident.en, *incident.files, language=language)
    diff = next(section for section in answer.sections if section.kind == "diff")
    for name in incident.appears:
        rule = advisor.knowledge.rules.get(name)
        assert rule is not None
        cited = next(citation for citation in answer.citations if citation.id == name)
        assert f"{rule.title.get(language)} [{cited.marker}]" in diff.body
        assert name not in diff.body


@every_case("language", LANGUAGES)
def test_each_finding_is_said_once(advisor: Advisor, language: str) -> None:
    for answer in answers(advisor, language):
        for finding in answer.findings:
            if len(finding.message) > 40 and finding.status == "fired":
                assert answer.answer.count(finding.message) <= 1, finding.rule_id


def test_a_chinese_answer_has_no_english_sentence(advisor: Advisor) -> None:
    mixed = {
        found[0]: text[:80]
        for answer in answers(advisor, "zh")
        for text in texts(answer)
        if (found := [run for run in WORDS.findall(prose(text)) if SMALL & set(run.lower().split())])
    }
    assert mixed == {}


@every_case(("language", "said"), [("en", "2 problems in your config"), ("zh", "你的配置里有 2 个问题")])
def test_a_config_alone_gets_its_problems_fixes_first_and_one_patch(advisor: Advisor, language: str, said: str) -> None:
    answer = asked(advisor, "", Attachment(name="sft.yaml", content=FAULTY), language=language)
    text = "\n\n".join(section.markdown for section in lead(answer))
    assert said in text
    assert text.count("```diff") == 1
    assert "-template: llama3" in text
    problems = next(section for section in answer.sections if section.kind == "problems")
    assert all(item.startswith("**") for item in problems.items)


def many_files() -> list[Attachment]:
    """Eight runs that differ in their folder and learning rate."""
    return [
        Attachment(
            name=f"run{n}.yaml", content=FAULTY.replace("_dir: out", f"_dir: out{n}") + f"learning_rate: {n + 1}.0e-6\n"
        )
        for n in range(8)
    ]


def test_what_holds_for_many_files_is_said_once_with_their_number(advisor: Advisor) -> None:
    answer = asked(advisor, "", *many_files())
    assert "run4.yaml" in answer.sections[0].body
    assert "and 3 more" in answer.sections[0].body
    problems = next(section for section in answer.sections if section.kind == "problems")
    assert any("in 8 files" in item for item in problems.items)
    assert len(set(problems.items)) == len(problems.items) < 5


@every_case(
    ("text", "count"),
    [
        ("", 0),
        ("Set `--bf16` and go on. [3]", 5),
        ("损失变成了 NaN。[1]", 4),
        ("one\n```diff\n- two three\n```\nfour", 2),
        ("(see [12])", 1),
    ],
)
def test_words_are_counted_outside_of_code_blocks_and_markers(text: str, count: int) -> None:
    assert word_count(text) == count


@every_case(
    ("text", "head", "rest"),
    [
        ("One. Two.\n\nThree.", "One. Two.", "Three."),
        ("A long first sentence of many words. Two.", "A long first sentence of many words.", "Two."),
        ("Use:\n\n- this\n- that", "Use: this", "- that"),
        ("- First.\n  Still first.\n- Second.", "First. Still first.", "- Second."),
        ("第一句。第二句。", "第一句。第二句。", ""),
        ("```\ncode\n```", "`code`", ""),
        ("```\none\ntwo\n```\nThen this.", "Then this.", "```\none\ntwo\n```"),
        ("", "", ""),
    ],
)
def test_a_text_is_split_after_its_first_sentences(text: str, head: str, rest: str) -> None:
    assert split(text, 4) == (head, rest)


def test_a_list_that_does_not_fit_continues_behind_the_fold() -> None:
    body = "\n".join(f"- entry {number} of five words" for number in range(4))
    items = tuple(f"entry {number} of five words" for number in range(4))
    section = Section(kind="other", heading="Others", body=body, items=items)
    shown, hidden = fold((section,), most=12)
    assert (shown.folded, shown.items) == (False, items[:2])
    assert (hidden.folded, hidden.heading, hidden.items) == (True, "Others", items[2:])


def test_what_is_essential_is_never_folded() -> None:
    sections = tuple(Section(kind=kind, body="word " * 20) for kind in ("lead", "because", "diff"))
    assert [section.kind for section in fold(sections, most=5) if section.folded] == ["because"]


def test_a_table_is_a_list_where_nothing_draws_tables() -> None:
    table = (
        "Moved:\n\n| written | valid in | now |\n|---|:--|---|\n| `a` | up to 0.1 | `b` |\n| `c\\|d` | | |\n\nSo it is."
    )
    assert without_tables(table) == "Moved:\n\n- `a`; valid in: up to 0.1; now: `b`\n- `c\\|d`\n\nSo it is."
    assert without_tables("| alone\ntext | more") == "| alone\ntext | more"


def test_a_number_before_a_word_is_no_list() -> None:
    assert split("80 个 loss 恰好为 0。其余如此。", 4)[0] == "80 个 loss 恰好为 0。"
    assert split("1. First.\n2. Second.", 4)[0] == "First."
