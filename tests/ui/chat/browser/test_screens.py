"""Walks over what once went wrong on the screens, as a newcomer meets it, in both languages and on a phone.

What needs a model, a restarted server or a second reader is walked in `test_composer` and `test_answers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.service.test_spine import SMALL, WORDS
from tests.service.test_worst_answers import row
from tests.ui.chat.browser.conftest import Tab, axe_source
from tests.ui.chat.conftest import Served
from trainmedic.ui.chat.texts import Language, Words, examples, path_of, words

BEST_PRACTICES = ["landmark-unique", "label-content-name-mismatch", "skip-link"]
QUOTED = re.compile(r"“[^”]*”|\"[^\"\n]*\"|'[^'\n]*'")
SOUND = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
template: qwen
bf16: true
dataset: mine
output_dir: out
learning_rate: 1.0e-5
"""


@dataclass(slots=True, kw_only=True)
class Screen:
    """A tab in one language and width."""

    tab: Tab
    language: Language
    width: int

    @property
    def page(self) -> Any:
        return self.tab.page

    @property
    def t(self) -> Words:
        return words(self.language)

    @property
    def is_phone(self) -> bool:
        return self.width < 900

    def said(self, en: str, zh: str) -> str:
        return zh if self.language == "zh" else en

    def start(self) -> None:
        self.tab.open(path_of(self.language))

    def follow(self, question: str) -> str:
        """Ask on; the text of the new answer."""
        before = self.page.get_attribute(".tm-after", "data-answer")
        self.tab.ask(question)
        self.page.wait_for_function("id => document.querySelector('.tm-after')?.dataset.answer !== id", arg=before)
        return self.look()

    def look(self) -> str:
        """Wait for the answer, and check what holds of every one."""
        self.tab.answered()
        self.check_text()
        return str(self.page.locator("#bot .bot-row").last.inner_text())

    def evidence(self, selector: str = "#evidence") -> str:
        """The text of a part of the evidence, which a phone shows on a tab of its own."""
        return " ".join(str(self.page.locator(selector).first.text_content()).split())

    def show(self, name: str) -> None:
        if self.is_phone:
            self.page.click(f'[data-tm-tab="{name}"]')

    def check_text(self) -> None:
        """No markup, no sentence of the other language, nothing wider than the screen."""
        assert not re.search(r"\]\(#|\*\*|\{\w+\}", self.prose())
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        if self.language == "zh":
            english = [run for run in WORDS.findall(self.prose()) if SMALL & set(run.lower().split())]
            assert len(english) <= 1, english  # a title may quote a message
        else:
            assert not re.search("[\u4e00-\u9fff]", self.prose())

    def prose(self) -> str:
        """What the answer says in its own words: without code, places, and the names of other pages."""
        text = str(
            self.page.evaluate(
                """() => [...document.querySelectorAll('#bot .bot-row .prose, .tm-ev, .tm-after')].map(element => {
                  const copy = element.cloneNode(true);
                  copy.querySelectorAll('pre, code, textarea, .tm-code, .tm-diff, .tm-meta').forEach(e => e.remove());
                  return copy.textContent; }).join('\\n')"""
            )
        )
        return QUOTED.sub(" ", text)

    def check_practices(self) -> None:
        if not self.page.evaluate("Boolean(window.axe)"):
            self.page.evaluate(axe_source())
        broken = self.page.evaluate(
            "rules => axe.run({runOnly: {type: 'rule', values: rules}, resultTypes: ['violations']})", BEST_PRACTICES
        )
        named = [f"{rule['id']}: {node['target']}" for rule in broken["violations"] for node in rule["nodes"]]
        assert named == []
        assert self.tab.violations() == []


@pytest.fixture
def walk(served: Served, tab: Callable[..., Tab], request: pytest.FixtureRequest) -> Screen:
    """A screen of the service without a model."""
    language: Language = request.param
    width, height = {"en": (1440, 900), "zh": (390, 844)}[language]
    return Screen(tab=tab(served.plain, width=width, height=height), language=language, width=width)


def walks(*languages: Language) -> pytest.MarkDecorator:
    """In English on a wide screen, in Chinese on a phone."""
    return pytest.mark.parametrize("walk", languages, indirect=True)


@walks("en")
def test_the_first_page_says_what_to_send_in_one_language(walk: Screen) -> None:
    walk.start()
    text = walk.page.inner_text("#talk")
    assert "LLaMA-Factory" in text
    stops = []
    for _ in range(14):
        walk.page.keyboard.press("Tab")
        stops.append(
            walk.page.evaluate(
                "() => { const box = document.activeElement.getBoundingClientRect(); "
                "return [document.activeElement.outerHTML.slice(0, 200), box.width * box.height]; }"
            )
        )
    assert [stop for stop in stops if not stop[0].startswith("<body") and not stop[1]] == []
    walk.check_practices()


@walks("en", "zh")
def test_an_answer_leads_with_what_to_change(walk: Screen) -> None:
    kto = examples(walk.language)[1 if walk.language == "zh" else 0]
    walk.start()
    walk.page.click('[data-tm-example="kto"]')
    walk.look()
    assert kto.question in walk.page.inner_text("#bot .user-row")
    order = walk.page.evaluate(
        """() => [...document.querySelector('#bot .bot-row .prose').children].map(element =>
          element.matches('h2') ? 'verdict' : element.querySelector('code.language-diff') ? 'diff'
          : element.querySelector('a[href="#tm-fold"]') ? 'fold' : element.querySelector('strong') ? 'bold' : 'text')"""
    )
    shown = order[: order.index("fold") + 1]
    assert [shown[0], shown[1], shown[-1]] == ["verdict", "bold", "fold"]
    assert shown.count("diff") == 1
    assert shown.index("diff") < len(shown) - 2  # how to verify it comes after the patch
    if not walk.is_phone:
        diff = walk.page.locator("#bot code.language-diff").first.bounding_box()
        assert diff["y"] + diff["height"] < 900
    walk.page.locator("#bot .message-buttons button").last.click()
    walk.page.wait_for_timeout(200)
    assert "#tm-" not in walk.page.evaluate("navigator.clipboard.readText()")
    walk.page.click('#bot a[href="#tm-fold"]')
    refuted = walk.page.locator("#bot h3", has_text=walk.said("Ruled out", "已排除")).last
    assert refuted.is_visible()
    walk.show("evidence")
    walk.page.click(".tm-finding .tm-fold summary >> nth=0")
    rechecked = walk.evidence(".tm-recheck")
    assert "openrlhf-kto" not in rechecked
    assert "OpenRLHF KTO" in rechecked
    severities = walk.page.evaluate(
        """() => [...document.querySelectorAll('#tm-findings > .tm-finding')]
          .map(each => each.className.match(/tm-sev-(\\w+)/)[1])"""
    )
    ranks = ["error", "warning", "info"]
    assert [ranks.index(name) for name in severities][1:] == sorted(ranks.index(name) for name in severities)[1:]
    for word in ("refus", "拒绝"):
        assert word not in walk.evidence("#tm-findings")
    walk.check_practices()
    walk.show("answer")
    citation = walk.page.locator('#bot a[href="#tm-c1"]').first
    citation.scroll_into_view_if_needed()
    walk.page.wait_for_timeout(300)
    citation.hover()
    assert walk.t["open_source"] not in walk.page.inner_text(".tm-popover")
    pills = walk.page.locator(".tm-pill").count()
    walk.page.click('[data-tm-vote="up"]')
    walk.page.wait_for_selector(".tm-feedback [role=status]")
    assert walk.page.locator(".tm-pill").count() == pills


@walks("zh")
def test_a_conversation_keeps_to_what_was_found(walk: Screen) -> None:
    walk.start()
    walk.page.click('[data-tm-example="kto"]')
    walk.look()
    upgrade = walk.page.inner_text('[data-tm-follow="upgrade"]')
    assert "0.3.5" in upgrade
    left = walk.follow(walk.t["follow_patch"])
    assert len(left) < 4000
    changed = walk.follow(upgrade)
    assert "`" not in changed
    assert walk.said("no longer found", "不再触发") in changed
    again = walk.follow(walk.t["follow_still"])
    assert walk.t["verdict_no_fault"] not in again
    thanks = walk.follow(walk.said("thanks!", "谢谢！"))
    assert len(thanks) < 700


@walks("zh")
def test_the_composer_counts_lines_alike_and_keeps_long_names_within_the_screen(walk: Screen) -> None:
    walk.start()
    name = f"{'a_very_long_name_of_a_training_run_' * 4}.log"
    walk.tab.attach((name, row(1.0, 1.0, 0.1) * 13))
    with walk.page.expect_file_chooser() as chooser:
        walk.page.click("#tm-question .upload-button")
    chooser.value.set_files([{"name": "b.yaml", "mimeType": "text/plain", "buffer": SOUND.encode()}])
    walk.page.wait_for_function("() => document.querySelectorAll('#tm-chips-box .tm-chip').length === 2")
    thirteen = walk.t["read_lines"].format(count=13)
    assert thirteen in walk.page.inner_text("#tm-chips-box")
    walk.check_text()
    walk.tab.ask(walk.said("is this ok?", "这样正常吗？"))
    walk.look()
    assert thirteen.replace(" ", "\xa0") in walk.page.inner_text("#bot .user-row")
    assert thirteen in walk.evidence("#tm-read")
    walk.start()
    walk.page.keyboard.press("Enter")
    walk.page.wait_for_selector(".tm-alert")
    assert walk.t["empty"] in walk.page.inner_text(".tm-alert")
    assert not walk.page.locator(".toast-wrap").first.is_visible()


@walks("en")
def test_a_linked_answer_is_read_without_the_framework(walk: Screen) -> None:
    walk.start()
    walk.page.click('[data-tm-example="kto"]')
    walk.look()
    chat, evidence = walk.page.inner_text("#bot .panel-wrap"), walk.evidence(".tm-ev")
    answer_id = walk.page.get_attribute(".tm-after", "data-answer")
    asked: list[str] = []
    walk.page.on("request", lambda request: asked.append(request.url))
    walk.page.goto(f"{walk.tab.url}{path_of(walk.language)}?answer={answer_id}")
    walk.page.wait_for_selector("#tm-first .tm-ev", state="attached")
    walk.page.mouse.move(30, 300)
    answer = walk.page.inner_text("#bot .panel-wrap").replace(f"{walk.t['copy_button']}\n", "")
    assert answer.split() == chat.split()
    assert walk.evidence(".tm-ev") == evidence
    walk.page.click('#bot a[href="#tm-fold"]')
    walk.page.click("[data-tm-copy-code] >> nth=0")
    assert "--vanilla_loss" in walk.page.evaluate("navigator.clipboard.readText()")
    walk.check_text()
    walk.check_practices()
    assert [url for url in asked if "/assets/" in url or "gradio" in url] == []
    assert len(asked) < 10
    walk.show("answer")
    walk.page.fill("#tm-question textarea", walk.said("thanks!", "谢谢！"))
    walk.page.press("#tm-question textarea", "Enter")
    walk.page.wait_for_function(
        "id => ![undefined, id].includes(document.querySelector('gradio-app .tm-after')?.dataset.answer)", arg=answer_id
    )
    walk.tab.answered()
    assert walk.page.locator("#bot .user-row").count() == 2
