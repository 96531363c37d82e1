"""The pages as people use them, in a real browser over a real server."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.fake_model import Reply
from tests.ingest.reading import build
from tests.ui.chat.conftest import Served, Tab, serving, status_of, wait_until
from trainmedic.ingest.items import Raw
from trainmedic.ingest.review.state import load_review
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.ui.chat.follow import applied
from trainmedic.ui.chat.texts import examples, path_of, words
from trainmedic.ui.desk import DRAFTS

Open = Callable[..., Tab]
KTO, FP16 = examples("en")[0], examples("zh")[0]
HOSTILE = (
    '<img src="//evil.example/a" onerror="window.hacked=1"> ${window.hacked=1} {{value}} '
    "[x](javascript:window.hacked=1) ![p](https://evil.example/b) <form action=https://evil.example>"
    "<button>go</button></form> `</code><script>x</script>"
)
LATE = """(() => {
  const real = window.fetch;
  window.fetch = async (target, given) => {
    const answer = await real(target, given);
    if (!String(target.url || target).includes("/queue/data")) return answer;
    const reader = answer.body.getReader();
    const body = new ReadableStream({ async start(out) {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        const piece = next.value;
        setTimeout(() => out.enqueue(piece), 700);
      }
      setTimeout(() => out.close(), 700);
    } });
    return new Response(body, { status: answer.status, headers: answer.headers });
  };
})()"""
"""A network that brings the server's events 0.7 s late."""
NAN = '.tm-code tr[data-line="13"].hit mark.first'


def files(attachments: tuple[Attachment, ...]) -> list[tuple[str, str]]:
    return [(each.name, str(each.content)) for each in attachments]


def box_of(tab: Tab, selector: str) -> dict[str, float]:
    box = tab.page.locator(selector).first.bounding_box()
    assert box is not None
    return dict(box)


def test_a_question_in_chinese_with_dropped_files_is_answered_in_chinese_at_their_lines(tab: Open) -> None:
    page = tab()
    page.open("/zh/")
    page.attach(*files(FP16.files))
    chips = page.page.locator("#tm-chips-box .tm-chip").all_inner_texts()
    assert [chip.split("\n")[0] for chip in chips] == [file.name for file in FP16.files]
    assert words("zh")["kinds"]["log"] in chips[2]
    page.ask(FP16.question)
    page.answered()
    assert page.page.inner_text("#bot .prose h2").startswith(words("zh")["verdict_answered"])
    mark = page.page.locator(".tm-finding mark.first").first
    assert mark.inner_text() == "--torch_dtype float16"
    assert mark.evaluate("element => element.closest('tr').dataset.line") == "12"
    assert page.page.evaluate("document.documentElement.lang") == "zh-CN"
    assert page.page.locator(".tm-plot svg").count() >= 2
    page.shoot("answered-zh-1440")


@pytest.mark.usefixtures("slow_model")
def test_the_evidence_stands_before_the_text_and_the_text_comes_in_pieces(tab: Open) -> None:
    page = tab()
    page.open()
    page.attach(*files(KTO.files))
    page.page.evaluate(
        """() => { window.seen = []; new MutationObserver(() => {
          const text = [...document.querySelectorAll('#bot .bot-row .prose, #bot .bot .prose')].pop()?.innerText || '';
          const last = window.seen[window.seen.length - 1];
          const now = [Boolean(document.querySelector('.tm-ev')), text.length, text];
          if (!last || last[2] !== text || last[0] !== now[0]) window.seen.push(now);
        }).observe(document.body, {childList: true, subtree: true, characterData: true}); }"""
    )
    page.ask(KTO.question)
    page.answered()
    seen = page.page.evaluate("window.seen")
    first = next(index for index, (_, _, text) in enumerate(seen) if "because" in text)
    assert seen[first][0]
    partial = [text for _, _, text in seen if "because" in text and "Remove the flag" not in text]
    assert len(set(partial)) >= 2
    assert "hacked" not in page.page.evaluate("Object.keys(window).join()")
    assert page.page.locator(NAN).first.inner_text() == "--vanilla_loss"
    assert page.page.inner_text(".tm-state").startswith(words("en")["mode_llm"].partition("{")[0])
    assert page.page.locator("#bot img").count() == 0
    page.shoot("answered-en-1440")


def test_the_patch_is_copied_and_downloaded_as_it_is_and_applies_to_what_was_pasted(
    tab: Open, tmp_path: Path, served: Served
) -> None:
    page = tab(permissions=["clipboard-read", "clipboard-write"])
    page.open()
    page.page.click('[data-tm-example="kto"]')
    answer_id = page.answered()
    kept = served.history.stored_answer(answer_id)
    assert kept is not None
    patches = [finding["patch"] for finding in kept.answer["findings"] if finding["patch"]]
    page.page.click("[data-tm-copy]")
    page.page.wait_for_selector("[data-tm-copy].done")
    copied = page.page.evaluate("navigator.clipboard.readText()")
    assert copied in patches
    with page.page.expect_download() as download:
        page.page.click("[data-tm-download]")
    saved = tmp_path / "fix.patch"
    download.value.save_as(saved)
    assert saved.read_text(encoding="utf-8") == copied
    sources = [source for turn in kept.turns for source in turn.attachments]
    (changed,) = applied(copied, [Source(name=each.name, text=str(each.content), byte_count=0) for each in sources])
    assert "--vanilla_loss" not in str(changed.content)


def test_a_citation_leads_to_its_source_by_mouse_and_by_keyboard(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="kto"]')
    page.answered()
    link = page.page.locator('#bot a[href="#tm-c1"]').first
    link.hover()
    preview = page.page.inner_text(".tm-popover")
    assert page.page.locator("#tm-c1.tm-paired").count() == 1
    assert page.page.inner_text("#tm-c1 .title") in preview
    link.click()
    assert page.page.evaluate("document.activeElement.id") == "tm-c1"
    page.page.locator("#tm-question textarea").focus()
    link.focus()
    assert page.page.locator(".tm-popover").count() == 1
    page.page.keyboard.press("Escape")
    assert page.page.locator(".tm-popover").count() == 0
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "tm-c1"
    with page.page.context.expect_page() as opened:
        page.page.click("#tm-c1 a.title")
    opened.value.wait_for_selector(".tm-article h2")
    assert "case=" in opened.value.url


def test_a_question_sent_while_the_event_stream_ends_is_answered(tab: Open) -> None:
    page = tab()
    page.page.add_init_script(LATE)
    page.open()
    with page.page.expect_request("**/queue/join?*"):
        page.page.fill("#tm-question textarea", "How do I bake bread?")
    # By now the server has ended the stream, as nothing was under way; the browser does not know it yet.
    page.page.wait_for_timeout(1500)
    with page.page.expect_response("**/queue/join?*"):
        page.page.press("#tm-question textarea", "End")
        page.page.keyboard.type(" ")
    page.page.wait_for_timeout(300)
    page.page.keyboard.press("Enter")
    page.answered()


@pytest.mark.usefixtures("slow_model")
def test_a_slow_browser_ends_with_the_whole_answer(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.context.new_cdp_session(page.page).send("Emulation.setCPUThrottlingRate", {"rate": 8})
    page.page.click('[data-tm-example="kto"]')
    page.answered()
    page.page.wait_for_selector("#bot pre code.language-diff")
    assert page.page.locator('#bot a[href="#tm-c1"]').count() > 0
    assert page.page.locator(NAN).count() > 0


def test_stop_ends_the_models_work_and_opens_the_input_again(
    tab: Open, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        served.model,
        "_script",
        (Reply("The loss is NaN because ", "of it. ", "And then ", "more. ", between_s=0.15, end="hold"),),
    )
    page = tab()
    page.open()
    before = served.model.disconnected
    page.page.click('[data-tm-example="kto"]')
    page.page.wait_for_function("document.querySelector('#bot').innerText.includes('The loss is NaN because')")
    page.page.click("#tm-question .stop-button")
    page.page.wait_for_function(
        "text => document.querySelector('#bot').innerText.includes(text)", arg=words("en")["stopped"]
    )
    wait_until(lambda: served.model.disconnected > before)
    page.page.wait_for_selector("#tm-question textarea:not([disabled])")
    assert page.page.locator(NAN).count() > 0


def test_files_dropped_anywhere_on_the_page_are_attached(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.evaluate(
        """() => { const data = new DataTransfer();
          data.items.add(new File(['loss=nan\\n'], 'dropped.log', {type: 'text/plain'}));
          document.querySelector('.tm-hello').dispatchEvent(
            new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})); }"""
    )
    page.page.wait_for_selector("#tm-chips-box .tm-chip")
    assert "dropped.log" in page.page.inner_text("#tm-chips-box .tm-chip")


def test_a_second_question_says_which_answer_it_follows(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="kto"]')
    first = page.answered()
    with page.page.expect_request("**/queue/join?*") as typed:
        page.page.fill("#tm-question textarea", "And?")
    assert first not in (typed.value.post_data or "")
    with page.page.expect_request(lambda request: first in (request.post_data or "")):
        page.page.press("#tm-question textarea", "Enter")


def test_slash_goes_to_the_question_from_anywhere(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.evaluate("document.activeElement.blur()")
    page.page.keyboard.press("/")
    assert page.page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    assert page.page.input_value("#tm-question textarea") == ""


def test_what_did_not_help_is_stored_with_its_reason(tab: Open, served: Served) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="dpo"]')
    answer_id = page.answered()
    page.page.click('[data-tm-vote="down"]')
    page.page.wait_for_selector("[data-tm-reason]")
    wait_until(lambda: served.history.feedback(answer_id) is not None)
    page.page.click('[data-tm-reason="wrong_cause"]')
    page.page.wait_for_function(
        "text => document.querySelector('.tm-feedback').innerText.includes(text)", arg=words("en")["thanks"]
    )
    stored = served.history.feedback(answer_id)
    assert stored is not None
    assert (stored.reaction, stored.reason) == ("down", "wrong_cause")


def test_a_follow_up_sends_the_patched_file_and_the_finding_is_gone(tab: Open, served: Served) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="fp16"]')
    first = page.answered()
    assert page.page.locator("#tm-rule-fp16-trainables-adam-eps").count() == 1
    page.page.click('[data-tm-follow="patch"]')
    page.page.wait_for_function("id => document.querySelector('.tm-after')?.dataset.answer !== id", arg=first)
    second = page.answered()
    assert page.page.locator("#tm-rule-fp16-trainables-adam-eps").count() == 0
    kept = served.history.stored_answer(second)
    assert kept is not None
    assert "--torch_dtype bfloat16" in str(kept.turns[-1].attachments[0].content)
    assert [turn.answer_id for turn in kept.turns] == [first, second]


def test_a_missing_fact_is_asked_for_and_its_button_begins_the_answer(tab: Open) -> None:
    page = tab()
    page.open()
    page.ask("DPO rewards/chosen is nan, what is wrong?")
    page.answered()
    assert page.page.inner_text("#bot .prose h2") == words("en")["verdict_need_input"]
    assert page.page.evaluate("document.querySelector('.tm-ev > section').id") == "tm-ask"
    page.page.click('#tm-ask [data-tm-fill="framework: "]')
    assert page.page.input_value("#tm-question textarea") == "framework: "
    page.shoot("need-input-1440")


@pytest.mark.parametrize(
    ("language", "path", "query"), [("en", "/knowledge/", "loss is nan"), ("zh", "/zh/knowledge/", "显存不足")]
)
def test_the_knowledge_is_searched_filtered_and_read(language: str, path: str, query: str, tab: Open) -> None:
    page = tab()
    page.open(path)
    t = words("en" if language == "en" else "zh")
    page.page.fill("#tm-kb-query", query)
    page.page.keyboard.press("Enter")
    page.page.wait_for_url("**q=**")
    found = page.page.locator(".tm-kb-rows li").count()
    page.page.select_option('select[name="package"]', "trl")
    page.page.wait_for_url("**package=trl**")
    assert 0 < page.page.locator(".tm-kb-rows li").count() < found
    assert page.page.locator(".tm-kb-rows mark").count() > 0
    page.shoot(f"knowledge-{language}-1440")
    page.page.locator(".tm-kb-kinds a", has_text=t["kb_cases"]).click()
    page.page.wait_for_url("**kind=cases**")
    title = page.page.locator(".tm-kb-rows a").first.inner_text()
    page.page.locator(".tm-kb-rows a").first.click()
    page.page.wait_for_selector(".tm-article h2")
    assert page.page.locator(".tm-article h2").first.inner_text() == title
    assert t["kb_cause"] in page.page.locator("#tm-kb-body h3").all_inner_texts()
    page.page.go_back()
    assert page.page.input_value("#tm-kb-query") == query
    assert page.page.locator(".tm-kb-rows a").first.inner_text() == title


def test_a_rule_has_an_address_with_its_condition_and_its_cases(tab: Open) -> None:
    page = tab()
    page.open("/knowledge/?rule=openrlhf-kto-vanilla-loss-single-class")
    page.page.wait_for_selector("#tm-kb-body pre")
    assert "vanilla_loss" in page.page.inner_text("#tm-kb-body")
    assert page.page.locator('.tm-article a[href*="case=openrlhf-kto-vanilla-loss-nan"]').count() == 1
    page.open("/knowledge/?case=no-such-case")
    assert words("en")["kb_missing"] in page.page.inner_text(".tm-article")


def test_the_other_language_is_one_click_away_and_is_remembered(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.click("[data-tm-lang]")
    page.page.wait_for_url("**/zh/")
    page.page.wait_for_selector(".tm-hello")
    assert page.page.inner_text(".tm-hello h2") == words("zh")["hello"]
    page.page.goto(page.url)
    page.page.wait_for_url("**/zh/")
    chinese = tab(locale="zh-HK")
    chinese.page.goto(chinese.url)
    assert chinese.page.url.endswith("/zh/")


def test_on_a_narrow_screen_one_column_is_shown_and_a_citation_switches_to_its_source(tab: Open) -> None:
    page = tab(width=400, height=800)
    page.open()
    page.shoot("empty-en-400")
    page.page.click('[data-tm-example="kto"]')
    page.answered()
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.page.locator("#evidence").is_hidden()
    page.shoot("answer-en-400")
    page.page.locator('#bot a[href="#tm-c1"]').first.click()
    assert page.page.locator("#tm-c1").is_visible()
    assert page.page.locator("#talk").is_hidden()
    page.page.locator("#evidence").evaluate("element => element.scrollTo(0, 0)")
    page.shoot("evidence-en-400")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_dark_follows_the_system_and_the_choice_stays(tab: Open) -> None:
    page = tab(color_scheme="dark")
    page.open()
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.page.evaluate(background) == "rgb(14, 18, 23)"
    page.page.click('[data-tm-example="dpo"]')
    page.answered()
    page.shoot("no-fault-dark-1440")
    page.page.click("[data-tm-theme]")
    assert page.page.evaluate(background) == "rgb(246, 247, 249)"
    page.open("/knowledge/")
    page.page.wait_for_function(f"{background} === 'rgb(246, 247, 249)'")


def test_a_link_shows_the_same_answer_to_somebody_else(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="kto"]')
    answer_id = page.answered()
    chat, evidence = page.page.inner_text("#bot .panel-wrap"), page.page.inner_text(".tm-ev")
    other = tab(width=1100, locale="en-GB")
    other.open(f"/?answer={answer_id}")
    other.page.wait_for_selector(".tm-ev")
    assert other.page.inner_text("#bot .panel-wrap") == chat
    assert other.page.inner_text(".tm-ev") == evidence
    assert other.page.locator(NAN).first.inner_text() == "--vanilla_loss"
    other.shoot("link-en-1100")
    other.open("/?answer=nothing")
    other.page.wait_for_selector("#bot .prose")
    assert words("en")["link_gone"].split("**")[1] in other.page.inner_text("#bot")


VERDICTS = {
    "answered": KTO.question,
    "need_input": "DPO rewards/chosen is nan, what is wrong?",
    "not_in_kb": "How do I bake bread?",
    "no_fault": examples("en")[2].question,
}


def broken(page: Tab, *widths: int) -> dict[str, list[str]]:
    """The violations of a page in both schemes, by how it was looked at."""
    found = {}
    for width in widths:
        page.page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.dress(scheme)
            found[f"{scheme} {width}"] = page.violations()
            if page.page.locator('[data-tm-tab="evidence"]').is_visible():
                page.page.click('[data-tm-tab="evidence"]')
                found[f"{scheme} {width} evidence"] = page.violations()
                page.page.click('[data-tm-tab="answer"]')
    return {where: each for where, each in found.items() if each}


@pytest.mark.parametrize(
    ("verdict", "widths"),
    [("answered", (1440, 400)), ("need_input", (1440,)), ("not_in_kb", (1440,)), ("no_fault", (1440,))],
)
def test_an_answer_breaks_no_rule_of_accessibility(verdict: str, widths: tuple[int, ...], tab: Open) -> None:
    page = tab()
    page.open()
    page.attach(*files({"answered": KTO.files, "no_fault": examples("en")[2].files}.get(verdict, ())))
    page.ask(f"{VERDICTS[verdict]}\n```bash\necho $HOME --x 1 # done\n```")
    page.answered()
    assert page.page.locator(f'#bot h2 a[href="#tm-v-{verdict}"]').count() == 1
    assert broken(page, *widths) == {}


@pytest.mark.parametrize(
    ("path", "widths"),
    [
        ("/knowledge/", (1440,)),
        ("/knowledge/?kind=defects&package=trl&version=0.19", (1440, 400)),
        ("/zh/knowledge/?case=openrlhf-kto-vanilla-loss-nan", (1440, 400)),
        ("/knowledge/?rule=openrlhf-kto-vanilla-loss-single-class", (1440,)),
    ],
)
def test_a_page_of_the_knowledge_breaks_no_rule_of_accessibility(path: str, widths: tuple[int, ...], tab: Open) -> None:
    page = tab()
    page.open(path)
    # The rows of the list are alike: the first of them stand for all.
    page.page.evaluate("document.querySelectorAll('.tm-kb-rows li:nth-child(n + 5)').forEach(row => row.remove())")
    assert broken(page, *widths) == {}


def test_a_fenced_command_in_the_question_is_shown_as_code(tab: Open) -> None:
    page = tab()
    page.open()
    page.ask("KTO loss is nan, why?\n\n```bash\ndeepspeed --module openrlhf.cli.train_kto \\\n   --vanilla_loss\n```")
    page.answered()
    bubble = page.page.locator("#bot .user-row")
    assert bubble.locator("pre code").inner_text().rstrip("\n") == (
        "deepspeed --module openrlhf.cli.train_kto \\\n   --vanilla_loss"
    )
    assert "```" not in bubble.inner_text()


def test_an_answer_given_on_the_pages_is_counted(tab: Open, served: Served) -> None:
    def counted() -> float:
        with urlopen(f"{served.url}/metrics") as found:
            lines = found.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("trainmedic_answers_total{"))

    page = tab()
    page.open()
    before = counted()
    page.ask("How do I bake bread?")
    page.answered()
    assert counted() == before + 1


@pytest.mark.usefixtures("slow_model")
def test_the_second_question_moves_up_as_its_answer_comes(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.click('[data-tm-example="kto"]')
    first = page.answered()
    page.page.click('[data-tm-follow="still"]')
    page.page.wait_for_function("id => document.querySelector('.tm-after')?.dataset.answer !== id", arg=first)
    page.answered()
    last, chat = page.page.locator("#bot .user-row").last, page.page.locator("#bot .panel-wrap")
    page.page.wait_for_function(
        """() => { const wrap = document.querySelector('#bot .panel-wrap');
          const rows = document.querySelectorAll('#bot .user-row');
          const top = rows[rows.length - 1].getBoundingClientRect().top - wrap.getBoundingClientRect().top;
          return Math.abs(top - 8) < 4 || wrap.scrollTop >= wrap.scrollHeight - wrap.clientHeight - 2; }"""
    )
    assert last.is_visible()
    assert chat.evaluate("element => element.scrollTop") > 0


def test_hostile_text_is_shown_as_it_is_and_nothing_of_it_runs(tab: Open) -> None:
    page = tab()
    page.open()
    command = str(KTO.files[0].content).replace("/data/feedback.jsonl", "'/data/<img src=//evil.example/c>${HOME}'")
    page.attach(("<b>x</b>.sh", command), ("log`${1}`.log", f"{HOSTILE}\nloss=nan\n{HOSTILE}\n"))
    page.ask(f"KTO loss is nan {HOSTILE}")
    page.answered()
    assert HOSTILE in page.page.inner_text("#bot .user-row")
    assert "<img src=//evil.example/c>${HOME}" in page.page.inner_text(".tm-ev")
    assert page.page.evaluate("window.hacked") is None
    assert page.page.locator("#main img, #main form[action], #main script, #main iframe").count() == 0
    assert page.outside == []
    answer_id = page.page.get_attribute(".tm-after", "data-answer")
    page.open(f"/?answer={answer_id}")
    page.page.wait_for_selector(".tm-ev")
    # What is stored has no hosts.
    assert HOSTILE.replace("evil.example", "xxxx.xxxxxxx") in page.page.inner_text("#bot .user-row")
    assert page.page.evaluate("window.hacked") is None


def test_a_secret_is_masked_in_the_bubble_and_in_the_evidence(tab: Open) -> None:
    token = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
    page = tab()
    page.open()
    page.ask(f"KTO loss is nan, I ran HF_TOKEN={token} deepspeed --module openrlhf.cli.train_kto --vanilla_loss")
    page.answered()
    assert token not in page.page.content()
    assert "1 ×" in page.page.inner_text("#tm-read")


def test_a_long_paste_becomes_a_file_and_a_chip_can_be_taken_away(tab: Open) -> None:
    page = tab(permissions=["clipboard-read", "clipboard-write"])
    page.open()
    page.page.evaluate("text => navigator.clipboard.writeText(text)", "Epoch 1: loss=0.5\n" * 400)
    page.page.focus("#tm-question textarea")
    page.page.keyboard.press("Control+V")
    page.page.wait_for_selector("#tm-chips-box .tm-chip")
    assert "400" in page.page.inner_text("#tm-chips-box .tm-chip")
    page.page.click("[data-tm-drop]")
    page.page.wait_for_selector("#tm-chips-box .tm-chip", state="detached")


def test_a_guarded_server_shows_nothing_without_the_key(tab: Open, data_folder: Path) -> None:
    with serving(data_folder, "--keys", "first-key,second-key") as url:
        for path in ("/", "/zh/", "/knowledge/", "/config", "/gradio_api/upload", "/gradio_api/queue/join"):
            assert status_of(f"{url}{path}") == 401, path
        page = tab(url)
        page.page.goto(f"{url}/knowledge/?case=openrlhf-kto-vanilla-loss-nan")
        assert page.violations() == []
        page.page.fill("#key", "wrong")
        page.page.click("button")
        assert words("en")["login_wrong"] in page.page.inner_text("main")
        page.shoot("login-1440")
        page.page.fill("#key", "second-key")
        page.page.click("button")
        page.page.wait_for_selector(".tm-article h2")
        assert page.page.url.endswith("case=openrlhf-kto-vanilla-loss-nan")
        (cookie,) = page.page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert "second-key" not in cookie["value"]
        page.open("/")
        page.page.click('[data-tm-example="kto"]')
        page.answered()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_curator_approves_a_draft_without_any_script(language: str, tab: Open, data_folder: Path) -> None:
    text = "# Loss is NaN in our fork\n\n## Problem\n\nNaN at step 1.\n\n## Root cause\n\nThe head is in fp16.\n"
    raw = Raw(origin=f"{language}.md", content=text, format="markdown")
    folder = data_folder / DRAFTS
    draft = build([raw], folder, source=language).written[0]
    t = words("zh" if language == "zh" else "en")
    page = tab(java_script_enabled=False)
    try:
        page.page.goto(f"{page.url}{path_of('zh' if language == 'zh' else 'en', 'review')}")
        page.page.click(f"a[href$='{draft.id}']")
        page.page.fill("textarea", draft_page := page.page.input_value("textarea").replace("fp16", "half precision"))
        page.page.click(f"text={t['review_save']}")
        assert page.page.input_value("textarea") == draft_page
        page.page.click(f"button:has-text('{t['review_approve']}')")
        page.page.wait_for_selector(f"button:has-text('{t['review_publish']}')")
        page.shoot(f"review-{language}")
        assert load_review(folder, draft.id).state == "reviewed"
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_curators_pages_can_be_used_by_everybody(scheme: str, tab: Open, data_folder: Path) -> None:
    folder = data_folder / DRAFTS
    raw = Raw(origin="a.md", content="# NaN\n\n## Problem\n\nNaN at step 1, set `--bf16 x`.\n", format="markdown")
    draft = build([raw], folder).written[0]
    page = tab(color_scheme=scheme, bypass_csp=True)
    try:
        for path in ("/review/", f"/review/{draft.id}"):
            page.page.goto(f"{page.url}{path}")
            assert page.violations() == []
            page.shoot(f"review-{scheme}{path.count(draft.id)}")
    finally:
        shutil.rmtree(folder)
