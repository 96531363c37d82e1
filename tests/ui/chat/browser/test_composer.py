"""The composer in a real browser: no failure of the network, the server or the reader loses what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_model import SILENT
from tests.ui.chat.browser.conftest import Tab
from tests.ui.chat.conftest import Served, serving
from tests.ui.chat.serving import START_S, status_of
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


def test_files_are_added_by_button_keyboard_drop_and_paste_and_taken_away(tab: Open) -> None:
    page = tab(width=390, height=844)
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
    page.page.evaluate("text => navigator.clipboard.writeText(text)", "Epoch 1: loss=0.5\n" * 400)
    page.page.focus("#tm-question textarea")
    page.page.keyboard.press("Control+V")
    page.page.wait_for_function("document.querySelectorAll('#tm-chips-box .tm-chip')[2]?.innerText.includes('400')")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390


FOLDERS = """() => {
  const file = (name, text) => ({ isDirectory: false, name, file: (done) => done(new File([text], name)) });
  const folder = (name, entries) => ({ isDirectory: true, name, createReader: () => {
    let read = false;
    return { readEntries: (done) => { const rest = read ? [] : entries; read = true; done(rest); } };
  } });
  const entries = ["good", "bad"].map((name) => folder(name, [file("train.yaml", "lr: 1"), file(".DS_Store", "")]));
  const event = new Event("drop", { bubbles: true, cancelable: true });
  const items = entries.map((entry) => ({ webkitGetAsEntry: () => entry }));
  Object.defineProperty(event, "dataTransfer", { value: { types: ["Files"], files: [], items } });
  document.body.dispatchEvent(event);
}"""
"""Two folders, as a browser gives them to a page that they are dropped on."""


def test_a_draft_survives_a_reload_and_the_other_language(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.evaluate(FOLDERS)
    wait_for_names(page, "good-train.yaml", "bad-train.yaml")
    page.page.fill("#tm-question textarea", QUESTION)
    page.page.click("[data-tm-drop] >> nth=0")
    wait_for_names(page, "bad-train.yaml")
    page.page.reload()
    wait_for_names(page, "bad-train.yaml")
    assert page.page.input_value("#tm-question textarea") == QUESTION
    page.page.click("[data-tm-lang]")
    page.page.wait_for_url("**/zh/")
    wait_for_names(page, "bad-train.yaml")
    assert page.page.input_value("#tm-question textarea") == QUESTION
    page.page.goto(page.url)
    page.page.wait_for_url("**/zh/")  # remembered
    page.loaded()
    page.page.press("#tm-question textarea", "Enter")
    page.answered()
    assert "bad-train.yaml" in page.page.inner_text("#bot .user-row")
    page.page.reload()
    page.page.wait_for_selector(".tm-ev")
    page.page.wait_for_timeout(300)
    assert (page.page.input_value("#tm-question textarea"), names_of(page)) == ("", [])
    page.page.context.add_cookies([{"name": "tm_lang", "value": "en", "url": page.url}])
    page.page.click("[data-tm-new]")
    page.page.wait_for_selector(".tm-hello")
    assert page.page.inner_text(".tm-hello h2") == ZH["hello"], "a new question stays in the page's language"


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


def test_a_question_interrupted_by_a_reload_comes_back_and_is_sent_again(
    tab: Open, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = served.model._forms
    monkeypatch.setattr(served.model, "_forms", (SILENT,))
    page = tab()
    page.open()
    page.attach(*[(file.name, str(file.content)) for file in KTO.files])
    page.ask(KTO.question)
    page.page.wait_for_selector(".tm-ev")
    monkeypatch.setattr(served.model, "_forms", script)
    page.page.reload()
    wait_for_names(page, *[file.name for file in KTO.files])
    wait_for_notice(page, EN["interrupted"])
    page.page.click(".tm-alert button")
    page.answered()
    assert page.page.locator("#bot .user-row").count() == 1


def test_a_restarted_server_is_noticed_and_the_question_is_sent_again_to_a_server_with_keys(
    tab: Open, data_folder: Path
) -> None:
    keys = ("--keys", "first-key,second-key")
    with serving(data_folder, *keys) as (url,):
        for path in ("/", "/zh/", "/knowledge/", "/config"):
            assert status_of(f"{url}{path}") == 401, path
        page = tab(url)
        page.page.goto(f"{url}/knowledge/?case=openrlhf-kto-vanilla-loss-nan")
        assert page.violations() == []
        page.page.fill("#key", "wrong")
        page.page.click("button")
        assert EN["login_wrong"] in page.page.inner_text("main")
        page.page.fill("#key", "second-key")
        page.page.click("button")
        page.page.wait_for_selector(".tm-article h2")
        assert page.page.url.endswith("case=openrlhf-kto-vanilla-loss-nan")
        (cookie,) = [each for each in page.page.context.cookies() if "session" in each["name"]]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert "second-key" not in cookie["value"]
        page.page.goto(f"{url}/")
        page.page.wait_for_selector("#tm-first", timeout=START_S * 1000)
        page.loaded()
        page.attach(("a.log", LOG))
        page.page.fill("#tm-question textarea", "KTO loss is nan")
        page.page.wait_for_timeout(300)
    page.page.press("#tm-question textarea", "Enter")
    wait_for_notice(page, EN["offline_sent"])
    page.page.click(".tm-alert button")
    with serving(data_folder, *keys, "--port", url.rpartition(":")[2]):
        page.page.wait_for_selector(".tm-after[data-answer]", timeout=START_S * 1000)
        bubble = page.page.inner_text("#bot .user-row")
        assert "KTO loss is nan" in bubble
        assert "a.log" in bubble
    page.page.fill("#tm-question textarea", "and then")
    wait_for_notice(page, EN["offline"])


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
    page.page.fill("#tm-question textarea", "my own words")
    page.page.click('[data-tm-example="kto"]')
    page.answered()
    assert page.page.input_value("#tm-question textarea") == "my own words", "an example leaves the draft where it is"
    assert len(names_of(page)) == 40
