"""A newcomer's first minute: a first answer without the framework, a run's folder, and room for the answer."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ui.chat.browser.conftest import Tab
from tests.ui.chat.conftest import Served
from trainmedic.ui.chat.texts import examples, words

Open = Callable[..., Tab]
EN, ZH = words("en"), words("zh")
KTO = examples("en")[0]
ROWS = "{'loss': 0.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
LEAST_SHARE = 0.6
"""Of the height is the answer's, also at 200 % zoom."""
TARGET = 24
FRAMEWORK = ("/assets/", "gradio_api")
PLACES = """() => Object.fromEntries(['.tm-hello h2', '.tm-hello .lead', '#tm-question textarea', '.upload-button',
  '.submit-button', '.tm-start h3', '.tm-example'].map(selector => {
    const element = [...document.querySelectorAll(selector)].find(each => each.offsetWidth);
    const box = element.getBoundingClientRect(), font = getComputedStyle(element).fontFamily;
    return [selector, [box.x, box.y, box.width, box.height].map(Math.round).join() + font];
  }))"""


def listed(tab: Tab) -> list[str]:
    return list(tab.page.locator(".tm-history li a").all_text_contents())


def test_the_first_answer_needs_no_framework_and_is_in_the_list_of_this_browser(tab: Open, served: Served) -> None:
    page = tab(served.plain)
    page.page.goto(f"{page.url}/")
    assert page.page.locator(".tm-history").is_hidden()
    files = [{"name": f.name, "mimeType": "text/plain", "buffer": str(f.content).encode()} for f in KTO.files]
    page.page.set_input_files("#tm-first .upload-button input", files)
    page.page.wait_for_function("document.querySelectorAll('.tm-chip svg').length === 3")
    chips = page.page.inner_text("#tm-chips-box")
    assert EN["kinds"]["command"] in chips
    assert EN["read_lines"].format(count=13) in chips
    page.page.fill("#tm-first textarea", KTO.question)
    page.page.press("#tm-first textarea", "Enter")
    first = page.answered()
    assert "--vanilla_loss" in page.page.inner_text("#bot .bot-row")
    assert page.page.locator("#evidence .tm-finding").first.is_visible()
    assert [url for url in page.requests if any(part in url for part in FRAMEWORK)] == []
    assert listed(page) == [KTO.question]
    page.page.click("#tm-question textarea")
    page.page.wait_for_selector("#tm-first", state="detached")
    page.ask("thanks!")
    page.page.wait_for_function("id => document.querySelector('.tm-after')?.dataset.answer !== id", arg=first)
    latest = page.answered()
    page.page.click("[data-tm-new]")
    page.page.click(".tm-history summary")
    assert listed(page) == [KTO.question], "a conversation is listed once"
    page.page.click(".tm-history li a")
    page.page.wait_for_selector("#tm-first .tm-ev")
    assert latest in page.page.url
    assert page.page.locator("#bot .user-row").count() == 2
    page.page.click(".tm-history summary")
    page.page.click("[data-tm-unlist]")
    assert page.page.locator(".tm-history").is_hidden()


def test_a_question_outlives_a_lost_connection_before_the_framework_is_there(tab: Open, served: Served) -> None:
    page = tab(served.plain)
    page.page.goto(f"{page.url}/zh/")
    page.page.fill("#tm-first textarea", "KTO loss is nan")
    page.page.route("**/first/ask", lambda route: route.abort())
    page.page.press("#tm-first textarea", "Enter")
    page.page.wait_for_selector(".tm-alert button")
    assert ZH["offline_sent"] in page.page.inner_text(".tm-alert")
    page.page.reload()
    assert page.page.input_value("#tm-first textarea") == "KTO loss is nan"
    page.page.unroute("**/first/ask")
    page.page.click('[data-tm-example="dpo"]')
    page.answered()
    assert page.page.input_value("#tm-question textarea") == "KTO loss is nan", "an example leaves the draft"


def run_in(folder: Path) -> Path:
    """A run as it lies on a disk: what tells of it, and what does not."""
    run = folder / "my-run"
    for name in ("checkpoint-10", "data", "wandb/run-1/files", "node_modules"):
        (run / name).mkdir(parents=True)
    (run / "train_config.yaml").write_text("learning_rate: 1.0e-3\nbf16: true\n")
    (run / "train.log").write_text(ROWS * 30_000)
    (run / "old.log").write_text(ROWS)
    os.utime(run / "old.log", (1, 1))
    (run / "train.py").write_text("trainer = Trainer(model)\ntrainer.train()\n")
    (run / "plot.py").write_text("print(1)\n")
    for rank in range(3):
        (run / f"rank_{rank}.log").write_text(f"rank {rank}\n" + ("ValueError: no\n" if rank == 2 else ""))
    (run / "checkpoint-10/model.safetensors").write_bytes(bytes(1000))
    (run / "checkpoint-10/trainer_state.json").write_text('{"log_history": []}')
    (run / "data/rows.jsonl").write_text("{}\n")
    (run / "node_modules/x.log").write_text("no\n")
    return run


def test_of_a_picked_folder_only_what_tells_of_the_run_is_sent_with_long_logs_whole(
    tab: Open, served: Served, tmp_path: Path
) -> None:
    page = tab(served.plain)
    page.page.goto(f"{page.url}/")
    page.page.set_input_files("[data-tm-folder]", run_in(tmp_path))
    page.page.wait_for_selector(".tm-chip svg")
    names = page.page.locator("#tm-chips-box .tm-chip b").all_inner_texts()
    assert set(names) == {
        "my-run-train_config.yaml",
        "my-run-train.log.gz",
        "my-run-old.log",
        "my-run-train.py",
        "my-run-rank_0.log",
        "my-run-rank_2.log",
        "my-run-checkpoint-10-trainer_state.json",
    }
    packed = page.page.evaluate(
        """() => new Promise(done => { const opening = indexedDB.open('trainmedic', 1); opening.onsuccess = () => {
          const all = opening.result.transaction('files').objectStore('files').getAll();
          all.onsuccess = () => all.result[0].files.find(file => file.name.endsWith('.gz')).arrayBuffer()
            .then(buffer => done([...new Uint8Array(buffer)])); }; })"""
    )
    assert gzip.decompress(bytes(packed)).decode() == ROWS * 30_000
    page.page.press("#tm-first textarea", "Enter")
    page.answered()
    assert "30,000" in page.page.text_content("#tm-read")


@pytest.mark.parametrize("path", ["/", "/zh/"])
def test_nothing_jumps_and_every_name_is_translated_when_the_framework_takes_over(tab: Open, path: str) -> None:
    page = tab(locale="zh-CN" if path == "/zh/" else "en-US")
    page.page.goto(f"{page.url}{path}")
    before = page.page.evaluate(PLACES)
    page.page.focus('[data-tm-example="dpo"]')
    page.page.evaluate("window.tmDraft.wake()")
    page.page.wait_for_selector("#tm-first", state="detached")
    page.page.wait_for_timeout(300)
    assert page.page.evaluate(PLACES) == before
    assert page.page.evaluate("document.activeElement.dataset.tmExample") == "dpo"
    t = words("zh" if path == "/zh/" else "en")
    names = page.page.evaluate(
        """() => [...document.querySelectorAll('#tm-question [aria-label]')].filter(each => each.offsetWidth)
          .map(each => each.getAttribute('aria-label'))"""
    )
    assert set(names) == {t["ask_label"], t["attach"], t["send"]}
    assert [url for url in page.requests if ".woff" in url] == []


@pytest.mark.parametrize(("width", "height"), [(720, 450), (390, 844), (1440, 900)])
def test_the_answer_has_the_room_and_every_target_the_size_of_a_finger(
    tab: Open, served: Served, width: int, height: int
) -> None:
    page = tab(served.plain, width=width, height=height)
    page.page.goto(f"{page.url}/")
    page.page.click('[data-tm-example="kto"]')
    page.answered()
    share = page.page.evaluate("document.querySelector('#tm-scroll').getBoundingClientRect().height / innerHeight")
    assert share >= LEAST_SHARE
    for tab_name in ("answer", "evidence"):
        if width < 900:
            page.page.click(f'[data-tm-tab="{tab_name}"]')
        assert small_targets(page) == []


def small_targets(page: Tab) -> list[str]:
    """What is clicked and is lower than a finger: a point at half of `TARGET` above or below its middle misses it."""
    return list(
        page.page.evaluate(
            """size => [...document.querySelectorAll('a, button, summary, input, select, label')].filter(each => {
              // Links in a sentence are as high as it.
              if (each.parentElement.matches('p') && !each.matches('.tm-meta a')) return false;
              const options = { visibilityProperty: true, opacityProperty: true };
              if (each.matches('label > input') || !each.checkVisibility(options)) return false;
              each.scrollIntoView({ block: 'center' });
              const box = each.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
              if (box.height > 40 || !box.width || each.getClientRects().length > 1) return false;
              return [y - size / 2 + 1, y + size / 2 - 1].some(at => {
                const hit = document.elementFromPoint(x, at); return hit && hit !== each && !each.contains(hit); });
            }).map(each => `${each.tagName} ${each.className} ${each.textContent.trim().slice(0, 30)}`)""",
            TARGET,
        )
    )


def test_only_who_asked_deletes_a_conversation_from_a_menu(tab: Open, served: Served) -> None:
    asker = tab(served.plain)
    asker.page.goto(f"{asker.url}/")
    asker.page.click('[data-tm-example="kto"]')
    answer_id = asker.answered()
    reader = tab(served.plain, locale="en-US")
    for page in (reader, asker):
        page.page.on("dialog", lambda dialog: dialog.accept())
        page.page.goto(f"{page.url}/?answer={answer_id}")
        page.loaded()
        assert not page.page.locator("[data-tm-forget]").is_visible()
        page.page.click(".tm-feedback .tm-menu summary")
        page.page.click("[data-tm-forget]")
    assert EN["delete_not_yours"] in reader.page.inner_text(".tm-alert")
    asker.page.wait_for_function("text => document.querySelector('#bot').innerText.includes(text)", arg=EN["deleted"])
    assert asker.page.locator(".tm-history").is_hidden()
