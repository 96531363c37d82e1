"""The composer in a real browser: no failure of the network, the server or the reader loses what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_model import Reply
from tests.ui.chat.conftest import Served, Tab, serving
from trainmedic.ui.chat.texts import examples, words

Open = Callable[..., Tab]
KTO = examples("en")[0]
EN, ZH = words("en"), words("zh")
LOG = "{'loss': 0.5, 'grad_norm': 1.0, 'epoch': 0.1}\n"
QUESTION = "KTO loss is nan, why?"
CHIPS = "#tm-chips-box .tm-chip b"


def names_of(tab: Tab) -> list[str]:
    return list(tab.page.locator(CHIPS).all_inner_texts())


def wait_for_names(tab: Tab, *names: str) -> None:
    tab.page.wait_for_function(
        """names => JSON.stringify([...document.querySelectorAll('#tm-chips-box .tm-chip b')].map(e => e.innerText))
           === JSON.stringify(names) && !document.getElementById('tm-first')""",
        arg=list(names),
    )


def wait_for_notice(tab: Tab, text: str) -> None:
    tab.page.wait_for_function(
        "text => [...document.querySelectorAll('.tm-alert')].some(e => e.innerText.includes(text))", arg=text
    )


def drop(tab: Tab, name: str, target: str) -> None:
    tab.page.evaluate(
        """([name, target]) => { const data = new DataTransfer();
          data.items.add(new File(['loss=nan\\n'], name, {type: 'text/plain'}));
          for (const kind of ['dragenter', 'dragover']) document.querySelector(target).dispatchEvent(
            new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
          window.zone = document.body.classList.contains('tm-dropping');
          document.querySelector(target).dispatchEvent(
            new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})); }""",
        [name, target],
    )


@pytest.mark.parametrize("width", [1440, 390])
def test_files_can_be_added_after_the_first_by_button_keyboard_and_drop(width: int, tab: Open) -> None:
    page = tab(width=width, height=844)
    page.open()
    page.attach(("a.log", LOG))
    with page.page.expect_file_chooser() as chooser:
        page.page.click("#tm-question .upload-button")
    chooser.value.set_files([{"name": "b.log", "mimeType": "text/plain", "buffer": LOG.encode()}])
    wait_for_names(page, "a.log", "b.log")
    with page.page.expect_file_chooser():
        page.page.focus("#tm-question .upload-button")
        page.page.keyboard.press("Enter")
    drop(page, "c.log", "#tm-question textarea")
    assert page.page.evaluate("window.zone")
    wait_for_names(page, "a.log", "b.log", "c.log")
    page.page.click("[data-tm-drop] >> nth=1")
    wait_for_names(page, "a.log", "c.log")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_draft_survives_a_reload_and_the_other_language(tab: Open) -> None:
    page = tab()
    page.open()
    page.attach(("a.log", LOG), ("b.log", LOG))
    page.page.fill("#tm-question textarea", QUESTION)
    page.page.click("[data-tm-drop] >> nth=0")
    wait_for_names(page, "b.log")
    page.page.reload()
    wait_for_names(page, "b.log")
    assert page.page.input_value("#tm-question textarea") == QUESTION
    page.page.click("[data-tm-lang]")
    page.page.wait_for_url("**/zh/")
    wait_for_names(page, "b.log")
    assert page.page.input_value("#tm-question textarea") == QUESTION
    page.page.press("#tm-question textarea", "Enter")
    page.answered()
    assert "b.log" in page.page.inner_text("#bot .user-row")
    page.page.reload()
    page.page.wait_for_selector(".tm-ev")
    page.page.wait_for_timeout(300)
    assert (page.page.input_value("#tm-question textarea"), names_of(page)) == ("", [])


def test_what_is_written_before_the_framework_has_loaded_is_sent_when_it_has(tab: Open) -> None:
    page = tab()
    page.page.goto(f"{page.url}/")
    assert page.page.locator("#tm-first #tm-question textarea").is_visible()
    page.page.set_input_files(
        "#tm-first input[type=file]", [{"name": "a.log", "mimeType": "text/plain", "buffer": LOG.encode()}]
    )
    page.page.fill("#tm-first textarea", QUESTION)
    page.page.press("#tm-first textarea", "Enter")
    page.answered()
    assert QUESTION in page.page.inner_text("#bot .user-row")
    assert "a.log" in page.page.inner_text("#bot .user-row")


def test_an_example_leaves_the_draft_where_it_is(tab: Open) -> None:
    page = tab()
    page.open()
    page.attach(("a.log", LOG))
    page.page.fill("#tm-question textarea", "my own words")
    page.page.click('[data-tm-example="kto"]')
    page.answered()
    assert page.page.input_value("#tm-question textarea") == "my own words"
    assert names_of(page) == ["a.log"]


def test_a_question_interrupted_by_a_reload_comes_back_and_is_sent_again(
    tab: Open, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = (Reply("The loss is NaN because ", "of it. ", "And then ", "more. ", end="hold"),)
    script = served.model._script
    monkeypatch.setattr(served.model, "_script", held)
    page = tab()
    page.open()
    page.attach(*[(file.name, str(file.content)) for file in KTO.files])
    page.ask(KTO.question)
    page.page.wait_for_selector(".tm-ev")
    monkeypatch.setattr(served.model, "_script", script)
    page.page.reload()
    wait_for_names(page, *[file.name for file in KTO.files])
    wait_for_notice(page, EN["interrupted"])
    page.page.click(".tm-alert button")
    page.answered()
    assert page.page.locator("#bot .user-row").count() == 1


def test_a_restarted_server_is_noticed_and_the_question_is_sent_again(tab: Open, data_folder: Path) -> None:
    page = None
    with serving(data_folder) as url:
        page = tab(url)
        page.open()
        page.attach(("a.log", LOG))
        page.page.fill("#tm-question textarea", "KTO loss is na")
        page.page.wait_for_timeout(300)
    port = url.rpartition(":")[2]
    page.page.press("#tm-question textarea", "Enter")
    wait_for_notice(page, EN["offline_sent"])
    page.page.click(".tm-alert button")
    with serving(data_folder, "--port", port):
        page.answered()
        bubble = page.page.inner_text("#bot .user-row")
        assert "KTO loss is na" in bubble
        assert "a.log" in bubble
    page.page.fill("#tm-question textarea", "and then")
    wait_for_notice(page, EN["offline"])
    with serving(data_folder, "--port", port):
        page.page.wait_for_selector(".tm-alert", state="detached")
        page.loaded()
        page.page.wait_for_function("document.querySelector('#tm-question textarea')?.value === 'and then'")


def test_stop_says_what_there_is_and_gives_the_question_back(
    tab: Open, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.model, "_script", (Reply("The loss ", "is NaN because ", end="hold"),))
    page = tab()
    page.open()
    page.ask(QUESTION)
    page.page.wait_for_selector(".tm-ev")
    page.page.click("#tm-question .stop-button")
    page.page.wait_for_function(
        "text => document.querySelector('#bot').innerText.includes(text)", arg=EN["stopped_evidence"]
    )
    page.page.wait_for_function("text => document.querySelector('#tm-question textarea').value === text", arg=QUESTION)
    assert page.page.locator(".tm-new").is_visible()


def test_nothing_an_unreadable_file_and_too_many_files_are_refused_beside_the_input(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.press("#tm-question textarea", "Enter")
    wait_for_notice(page, EN["empty"])
    page.attach(("model.bin", "\x00\x01\x02" * 99))
    page.page.press("#tm-question textarea", "Enter")
    wait_for_notice(page, EN["nothing_readable"].format(names="model.bin"))
    assert names_of(page) == ["model.bin"]
    page.page.click("[data-tm-drop]")
    wait_for_names(page)
    many = [{"name": f"{n}.log", "mimeType": "text/plain", "buffer": LOG.encode()} for n in range(45)]
    page.page.set_input_files("#tm-question input[type=file]", many)
    wait_for_notice(page, EN["too_many_files"].format(count=40))
    wait_for_names(page, *[f"{n}.log" for n in range(40)])
    box = page.page.locator("#tm-question textarea").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900


def test_citations_of_an_earlier_answer_open_its_own_sources(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="kto"]')
    first = page.answered()
    title = page.page.inner_text("#tm-c1 .title")
    page.ask("How do I bake bread?")
    page.page.wait_for_function("id => document.querySelector('.tm-after')?.dataset.answer !== id", arg=first)
    page.answered()
    page.page.locator('#bot a[href="#tm-c1"]').first.click()
    page.page.wait_for_function("id => document.querySelector('.tm-ev').dataset.answer === id", arg=first)
    page.page.wait_for_function("document.activeElement.id === 'tm-c1'")
    assert page.page.inner_text("#tm-c1 .title") == title


def test_two_who_ask_on_from_one_link_do_not_see_each_others_questions(tab: Open, served: Served) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="kto"]')
    shared = page.answered()
    other = tab()
    other.open(f"/?answer={shared}")
    other.page.wait_for_selector(".tm-ev")
    answers = []
    for each, question in ((page, "what about openrlhf 0.4.0?"), (other, "what about openrlhf 0.5.0?")):
        each.ask(question)
        each.page.wait_for_function("id => document.querySelector('.tm-after')?.dataset.answer !== id", arg=shared)
        answers.append(each.answered())
    for answer_id, question in zip(answers, ("0.4.0", "0.5.0"), strict=True):
        stored = served.history.stored_answer(answer_id)
        assert stored is not None
        assert [question in turn.question for turn in stored.turns] == [False, True]


def test_a_vote_keeps_the_follow_ups_can_be_changed_and_is_remembered(tab: Open, served: Served) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="kto"]')
    answer_id = page.answered()
    follow_ups = page.page.locator(".tm-pill").count()
    page.page.dblclick('[data-tm-vote="down"]')
    page.page.wait_for_selector("[data-tm-reason]")
    page.page.wait_for_timeout(300)
    stored = served.history.feedback(answer_id)
    assert stored is not None
    assert stored.reason == ""
    assert page.page.locator(".tm-pill").count() == follow_ups
    page.page.click('[data-tm-vote="change"]')
    page.page.click('[data-tm-vote="resolved"]')
    page.page.wait_for_selector(".tm-feedback [role=status]")
    page.page.reload()
    page.page.wait_for_selector('[data-tm-vote="change"]')
    assert EN["thanks_solved"] in page.page.inner_text(".tm-feedback")


def test_a_second_fact_replaces_the_label_that_nothing_was_written_behind(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.evaluate("window.tmDraft.fill('algorithm: ')")
    page.page.evaluate("window.tmDraft.fill('framework: ')")
    assert page.page.input_value("#tm-question textarea") == "framework: "
    page.page.evaluate("window.tmDraft.fill('')")
    page.page.fill("#tm-question textarea", "framework: TRL")
    page.page.evaluate("window.tmDraft.fill('stage: ')")
    assert page.page.input_value("#tm-question textarea") == "framework: TRL\nstage: "


def test_a_new_question_stays_in_the_pages_language(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="kto"]')
    page.answered()
    page.page.context.add_cookies([{"name": "tm_lang", "value": "zh", "url": page.url}])
    page.page.click("[data-tm-new]")
    page.page.wait_for_selector(".tm-hello")
    assert page.page.inner_text(".tm-hello h2") == EN["hello"]


def test_titles_and_previews_are_the_answers_own(tab: Open) -> None:
    page = tab()
    page.open()
    assert page.page.title() == EN["page_title"]
    page.page.click('[data-tm-example="kto"]')
    answer_id = page.answered()
    cause = page.page.inner_text(".tm-causes .first .title")
    assert page.page.title().startswith(cause)
    page.page.reload()
    page.page.wait_for_selector(".tm-ev")
    assert page.page.title().startswith(cause)
    meta = page.page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('meta[property]')]
          .map(meta => [meta.getAttribute('property'), meta.content]))"""
    )
    assert meta["og:title"].startswith(cause)
    assert meta["og:url"] == f"{page.url}/?answer={answer_id}"
    assert "radio" not in " ".join(meta.values())
