"""Answers as people meet them, in a real browser over a real server: how they come, and what can be done with them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_model import SILENT
from tests.test_run_diff import BAD, GOOD, log
from tests.ui.chat.browser.conftest import Tab, broken, checked, opened
from tests.ui.chat.conftest import Served
from tests.ui.chat.serving import wait_until
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.ui.chat.follow import applied
from trainmedic.ui.chat.texts import examples, words

Open = Callable[..., Tab]
EN, ZH = words("en"), words("zh")
KTO, FP16 = examples("en")[0], examples("zh")[0]
FENCED = "deepspeed --module openrlhf.cli.train_kto \\\n   --vanilla_loss"
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
SEEN = """() => { window.seen = []; new MutationObserver(() => {
  const text = [...document.querySelectorAll('#bot .bot-row .prose, #bot .bot .prose')].pop()?.innerText || '';
  const last = window.seen[window.seen.length - 1];
  const now = [Boolean(document.querySelector('.tm-ev')), text.length, text];
  if (!last || last[2] !== text || last[0] !== now[0]) window.seen.push(now);
}).observe(document.body, {childList: true, subtree: true, characterData: true}); }"""
HANG = "[WARNING] rank 5: shard 3981 is empty after filtering, skipping the batch\n" + "".join(
    f"[rank{rank}]: [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType={op}, "
    "NumelIn=16384, NumelOut=131072, Timeout(ms)=1800000) ran for 1800094 ms.\n"
    for rank, number, op in ((0, 233, "ALLGATHER"), (1, 233, "ALLGATHER"), (5, 232, "ALLREDUCE"))
)
NAN = '.tm-code tr[data-line="13"].hit mark.first'
ROWS = [{"loss": round(2 - n / 40, 3), "grad_norm": 1.0 + n, "learning_rate": 1e-5, "step": 10 * n} for n in range(30)]
BROKEN = [{"loss": 0.0, "grad_norm": float("nan"), "learning_rate": 1e-5, "step": 10 * n} for n in range(30, 36)]


SCRIPT = """from trl import SFTConfig, SFTTrainer

cfg = SFTConfig(output_dir="out", max_seq_length=2048)
trainer = SFTTrainer(model="Qwen/Qwen2.5-7B-Instruct", args=cfg, train_dataset=ds)

    
trainer.train()
"""
"""A script whose patch ends in a line of blanks."""
TRACE = """Traceback (most recent call last):
  File "/home/me/sft.py", line 3, in <module>
    cfg = SFTConfig(output_dir="out", max_seq_length=2048)
  File "/opt/lib/python3.11/site-packages/trl/args.py", line 9, in __init__
    super().__init__(**kwargs)
TypeError: SFTConfig.__init__() got an unexpected keyword argument 'max_seq_length'
"""


def files(attachments: tuple[Attachment, ...]) -> list[tuple[str, str]]:
    return [(each.name, str(each.content)) for each in attachments]


@pytest.fixture(scope="package")
def kto(served: Served, context: Callable[..., Any]) -> Iterator[Tab]:
    """A question with its files, answered by the model: the tests only look at it."""
    page = opened(context(permissions=["clipboard-read", "clipboard-write"]), served.url)
    page.open()
    page.attach(*files(KTO.files))
    page.page.evaluate(SEEN)
    page.ask(f"{KTO.question}\n\n```bash\n{FENCED}\n```")
    page.answered()
    yield page
    checked(page)


def test_the_evidence_stands_before_the_diagnosis(kto: Tab) -> None:
    assert kto.page.inner_text('#bot .prose h2 a[href^="#tm-s-"]').startswith(EN["origin_known"])
    seen = kto.page.evaluate("window.seen")
    first = next(index for index, (_, _, text) in enumerate(seen) if "because" in text)
    assert seen[first][0]
    assert kto.page.locator(NAN).first.inner_text() == "--vanilla_loss"
    assert kto.page.inner_text(".tm-state").startswith(EN["mode_llm"].partition("{")[0])
    bubble = kto.page.locator("#bot .user-row")
    assert bubble.locator("pre code").inner_text().rstrip("\n") == FENCED
    assert "```" not in bubble.inner_text()


def test_nothing_that_a_model_writes_runs_or_is_loaded(kto: Tab) -> None:
    assert "hacked" not in kto.page.evaluate("Object.keys(window).join()")
    assert kto.page.locator("#bot img").count() == 0


def test_the_patch_is_copied_and_downloaded_as_it_is_and_applies_to_what_was_pasted(
    kto: Tab, tmp_path: Path, served: Served
) -> None:
    kept = served.history.stored_answer(kto.answered())
    assert kept is not None
    patches = [finding["patch"] for finding in kept.answer["findings"] if finding["patch"]]
    kto.page.click("[data-tm-copy]")
    kto.page.wait_for_selector("[data-tm-copy].done")
    copied = kto.page.evaluate("navigator.clipboard.readText()")
    assert copied in patches
    with kto.page.expect_download() as download:
        kto.page.click("[data-tm-download]")
    saved = tmp_path / "fix.patch"
    download.value.save_as(saved)
    assert saved.read_text(encoding="utf-8") == copied
    sources = [source for turn in kept.turns for source in turn.attachments]
    (changed,) = applied(copied, [Source(name=each.name, text=str(each.content), byte_count=0) for each in sources])
    assert "--vanilla_loss" not in str(changed.content)


def told_at(page: Any, marker: int) -> str:
    """The id of the part of the evidence that a citation leads to."""
    return str(page.get_attribute(f"#tm-c{marker}", "data-tm-at") or f"tm-c{marker}")


def test_a_citation_leads_to_what_it_cites_by_mouse_and_by_keyboard(kto: Tab) -> None:
    page, at = kto.page, told_at(kto.page, 1)
    link = page.locator('#bot a[href="#tm-c1"]').first
    link.hover()
    assert page.text_content("#tm-c1 .title") in page.inner_text(".tm-popover")
    assert page.locator(f'[id="{at}"].tm-paired').count() == 1
    link.click()
    assert page.evaluate("[document.activeElement.id, document.activeElement.open]") == [at, True]
    page.locator("#tm-question textarea").focus()
    link.focus()
    assert page.locator(".tm-popover").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".tm-popover").count() == 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == at
    with page.context.expect_page() as knowledge:
        page.click(f'[id="{at}"] > .tm-meta a')
    knowledge.value.wait_for_selector(".tm-article h2")
    assert "case=" in knowledge.value.url
    knowledge.value.close()


def test_an_answer_holds_cause_line_and_patch_together_and_says_nothing_twice(
    tab: Open, served: Served, tmp_path: Path
) -> None:
    page = tab(served.plain)
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.open()
    page.attach(("sft.py", SCRIPT), ("pip.txt", "trl==0.20.0\ntransformers==4.54.1\n"), ("trace.txt", TRACE))
    page.ask("the script fails at start")
    page.answered()
    (tmp_path / "sft.py").write_text(SCRIPT, encoding="utf-8")
    patches = []
    for button in ("#bot .copy_code_button", "[data-tm-copy]"):
        page.page.locator(button).first.click()
        page.page.wait_for_timeout(200)
        patches.append(page.page.evaluate("navigator.clipboard.readText()"))
        (tmp_path / "fix.patch").write_text(patches[-1], encoding="utf-8")
        subprocess.run(["git", "apply", "--check", "fix.patch"], cwd=tmp_path, check=True)
    assert patches[0] == patches[1]
    assert '+cfg = SFTConfig(output_dir="out", max_length=2048)' in patches[0]
    shown = page.page.inner_text("#evidence")
    assert len(shown.split()) < 450
    assert patches[0] not in shown
    assert page.page.locator('.tm-code[data-file="sft.py"]').count() == 1
    # The exception and the user's own frame are marked, not the head of the traceback.
    marks = page.page.locator('.tm-finding .tm-code[data-file="trace.txt"] mark').all_inner_texts()
    assert marks == ['File "/home/me/sft.py", line 3, in <module>', TRACE.strip().split("\n")[-1]]
    sources = page.page.locator('#tm-sources [data-file="sft.py"]').evaluate_all("all => all.map(each => each.id)")
    cited = ", ".join(f'#bot a[href="#{source}"]' for source in sources)
    link = page.page.locator(cited).locator("visible=true").first
    link.hover()
    assert page.page.inner_text(".tm-popover tr.hit mark") == "max_seq_length=2048"
    link.click()
    assert page.page.evaluate("document.activeElement.matches('.tm-finding tr.hit[data-line=\"3\"]')")
    page.page.locator("#bot .message-buttons button").last.click()
    page.page.wait_for_timeout(200)
    message = page.page.evaluate("navigator.clipboard.readText()")
    assert message.rstrip().endswith(page.page.url)
    assert "[1]" not in message
    assert len(message.split()) < 250
    # Of a changed line nothing is cut on a phone, and what differs is marked.
    page.page.set_viewport_size({"width": 390, "height": 844})
    assert page.page.locator("#bot .del > b").first.inner_text() == "seq_"
    assert page.page.evaluate(
        """() => [...document.querySelectorAll('#bot pre :is(.ins, .del)')].every(
          line => line.getBoundingClientRect().right <= line.closest('pre').getBoundingClientRect().right)"""
    )


def test_an_answer_breaks_no_rule_of_accessibility(kto: Tab) -> None:
    assert kto.page.locator('#bot h2 a[href="#tm-v-answered"]').count() == 1
    assert broken(kto, 1440, 400) == {}


def test_on_a_narrow_screen_one_column_is_shown_and_a_citation_switches_to_its_source(kto: Tab) -> None:
    kto.page.set_viewport_size({"width": 400, "height": 800})
    assert kto.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert kto.page.locator("#evidence").is_hidden()
    kto.page.locator('#bot a[href="#tm-c1"]').first.click()
    assert kto.page.locator(f'[id="{told_at(kto.page, 1)}"]').is_visible()
    assert kto.page.locator("#talk").is_hidden()
    assert kto.page.evaluate("document.documentElement.scrollWidth") <= 400
    kto.page.click('[data-tm-tab="answer"]')
    kto.page.set_viewport_size({"width": 1440, "height": 900})


def test_a_link_shows_the_same_answer_to_somebody_else_under_its_own_title(kto: Tab, tab: Open) -> None:
    cause = kto.page.inner_text(".tm-node.first .tm-node-title")
    assert kto.page.title().startswith(cause)
    other = tab(width=1100, locale="en-GB")
    other.open(f"/?answer={kto.answered()}")
    other.page.wait_for_selector(".tm-ev")
    assert other.page.inner_text("#bot .panel-wrap") == kto.page.inner_text("#bot .panel-wrap")
    assert other.page.text_content(".tm-ev") == kto.page.text_content(".tm-ev")
    assert other.page.locator(NAN).first.inner_text() == "--vanilla_loss"
    assert other.page.title().startswith(cause)
    meta = other.page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('meta[property]')]
          .map(meta => [meta.getAttribute('property'), meta.content]))"""
    )
    assert meta["og:title"].startswith(cause)
    assert meta["og:url"] == f"{kto.url}/?answer={kto.answered()}"
    other.open("/?answer=nothing")
    other.page.wait_for_selector("#bot .prose")
    assert EN["link_gone"].split("**")[1] in other.page.inner_text("#bot")


def test_a_vote_is_stored_with_its_reason_keeps_the_follow_ups_and_can_be_changed(kto: Tab, served: Served) -> None:
    answer_id, follow_ups = kto.answered(), kto.page.locator(".tm-pill").count()

    def stored() -> tuple[str, str] | None:
        found = served.history.feedback(answer_id)
        return (found.reaction, found.reason) if found else None

    kto.page.dblclick('[data-tm-vote="down"]')
    kto.page.wait_for_selector("[data-tm-reason]")
    wait_until(lambda: stored() == ("down", ""))
    kto.page.click('[data-tm-reason="wrong_cause"]')
    wait_until(lambda: stored() == ("down", "wrong_cause"))
    assert kto.page.locator(".tm-pill").count() == follow_ups
    kto.page.click('[data-tm-vote="change"]')
    kto.page.click('[data-tm-vote="resolved"]')
    kto.page.wait_for_function(
        "text => document.querySelector('.tm-feedback').innerText.includes(text)", arg=EN["thanks_solved"]
    )
    kto.page.reload()
    kto.page.wait_for_selector('[data-tm-vote="change"]')
    assert EN["thanks_solved"] in kto.page.inner_text(".tm-feedback")


def test_citations_of_an_earlier_answer_open_its_own_sources(kto: Tab) -> None:
    first, title, at = kto.answered(), kto.page.text_content("#tm-c1 .title"), told_at(kto.page, 1)
    kto.ask("How do I bake bread?")
    kto.page.wait_for_function("id => document.querySelector('.tm-after')?.dataset.answer !== id", arg=first)
    kto.answered()
    kto.page.locator('#bot a[href="#tm-c1"]').first.click()
    kto.page.wait_for_function("id => document.querySelector('.tm-ev').dataset.answer === id", arg=first)
    kto.page.wait_for_function("at => document.activeElement.id === at", arg=at)
    assert kto.page.text_content("#tm-c1 .title") == title


def test_a_slow_browser_ends_with_the_whole_answer_to_a_question_in_chinese(tab: Open, served: Served) -> None:
    page = tab(served.plain)
    page.open("/zh/")
    page.attach(*files(FP16.files))
    chips = page.page.locator("#tm-chips-box .tm-chip").all_inner_texts()
    assert [chip.split("\n")[0] for chip in chips] == [file.name for file in FP16.files]
    assert ZH["kinds"]["log"] in chips[2]
    page.page.context.new_cdp_session(page.page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.ask(FP16.question)
    page.answered()
    assert page.page.inner_text("#bot .prose h2").startswith(ZH["verdict_answered"])
    page.page.wait_for_selector("#bot pre code.language-diff")
    mark = page.page.locator(".tm-finding mark.first").first
    assert mark.inner_text() == "--torch_dtype float16"
    assert mark.evaluate("element => element.closest('tr').dataset.line") == "12"
    assert page.page.evaluate("document.documentElement.lang") == "zh-CN"


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


def test_stop_ends_the_models_work_keeps_the_evidence_and_gives_the_question_back(
    tab: Open, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.model, "_forms", (SILENT,))
    page = tab()
    page.open()
    page.attach(*files(KTO.files))
    before = served.model.disconnected
    page.ask(KTO.question)
    page.page.wait_for_selector(".tm-ev")
    includes = "text => document.querySelector('#bot').innerText.includes(text)"
    page.page.wait_for_function(includes, arg=EN["working_asks"])
    under_way = page.page.inner_text("#bot")
    assert EN["working_weighs"].strip("*") in under_way
    assert KTO.files[0].name in under_way.partition("Read:")[2]
    page.page.click("#tm-question .stop-button")
    page.page.wait_for_function(includes, arg=EN["stopped_own"])
    assert "--vanilla_loss" in page.page.inner_text("#bot .message-row:last-child pre"), "the checks' own patch"
    wait_until(lambda: served.model.disconnected > before)
    page.page.wait_for_function(
        "text => document.querySelector('#tm-question textarea:not([disabled])')?.value === text", arg=KTO.question
    )
    assert page.page.locator(NAN).count() > 0
    assert page.page.locator(".tm-new").is_visible()


def test_a_follow_up_sends_the_patched_file_and_the_finding_is_gone(tab: Open, served: Served) -> None:
    page = tab(served.plain)
    page.open()
    page.page.click('[data-tm-example="fp16"]')
    first = page.answered()
    assert page.page.locator("#tm-rule-fp16-trainables-adam-eps").count() == 1
    with page.page.expect_request(lambda request: first in (request.post_data or "")):
        page.page.click('[data-tm-follow="patch"]')
    page.page.wait_for_function("id => document.querySelector('.tm-after')?.dataset.answer !== id", arg=first)
    second = page.answered()
    assert page.page.locator("#tm-rule-fp16-trainables-adam-eps").count() == 0
    kept = served.history.stored_answer(second)
    assert kept is not None
    assert "--torch_dtype bfloat16" in str(kept.turns[-1].attachments[0].content)
    assert [turn.answer_id for turn in kept.turns] == [first, second]
    # The second question has moved up.
    page.page.wait_for_function(
        """() => { const wrap = document.querySelector('#bot .panel-wrap');
          const rows = document.querySelectorAll('#bot .user-row');
          const top = rows[rows.length - 1].getBoundingClientRect().top - wrap.getBoundingClientRect().top;
          return Math.abs(top - 8) < 4 || wrap.scrollTop >= wrap.scrollHeight - wrap.clientHeight - 2; }"""
    )


def test_a_missing_fact_is_asked_for_and_its_button_begins_the_answer(tab: Open, served: Served) -> None:
    page = tab(served.plain)
    page.open()
    page.ask("DPO rewards/chosen is nan, what is wrong?")
    page.answered()
    assert page.page.inner_text("#bot .prose h2") == EN["verdict_need_input"]
    assert page.page.evaluate("document.querySelector('.tm-ev > section').id") == "tm-ask"
    assert broken(page, 1440) == {}
    box = "#tm-question textarea"
    page.page.evaluate("window.tmDraft.fill('algorithm: ')")
    page.page.click('#tm-ask [data-tm-fill="framework: "]')
    assert page.page.input_value(box) == "framework: ", "it replaces a label that nothing was written behind"
    page.page.fill(box, "framework: TRL")
    page.page.evaluate("window.tmDraft.fill('stage: ')")
    assert page.page.input_value(box) == "framework: TRL\nstage: "


def test_an_error_that_says_what_to_set_a_lock_file_and_a_hang_are_answered_in_the_chat(
    tab: Open, served: Served
) -> None:
    def told(*sent: tuple[str, str], question: str = "") -> str:
        page.open()
        page.attach(*sent)
        page.ask(question)
        page.answered()
        return str(page.page.inner_text("#bot"))

    page = tab(served.plain)
    trace = (
        'Traceback (most recent call last):\n  File "/opt/axolotl/src/axolotl/train.py", line 52, in train\n'
        "ValueError: eval split is too small. You should set `eval_sample_packing: False` in your config.\n"
    )
    config = "base_model: Qwen/Qwen2.5-7B\nadapter: lora\nsequence_len: 4096\neval_sample_packing: true\n"
    text = told(("config.yaml", config), ("err.txt", trace), question="it crashes at start")
    assert "The error message says what to do" in text
    assert "+eval_sample_packing: False" in text
    text = told(("requirements.txt", "trl==0.16.1\ntransformers==4.51.3\npeft==0.15.1\ndeepspeed==0.16.4\n"))
    assert EN["verdict_explained"] in text
    assert "known defects of these versions" in text
    assert "instead of 0.16.1" in text
    told(("nccl.log", HANG), question="training hangs, NCCL timeout")
    page.ask("which rank is guilty?")
    page.page.wait_for_function("() => document.querySelector('#bot').innerText.includes('Look at rank 5.')")
    page.page.wait_for_function("() => document.querySelector('#bot').innerText.includes('shard 3981 is empty')")


def test_hostile_text_is_shown_as_it_is_without_secrets_and_nothing_of_it_runs(tab: Open) -> None:
    page = tab()
    page.open()
    command = str(KTO.files[0].content).replace("/data/feedback.jsonl", "'/data/<img src=//evil.example/c>${HOME}'")
    page.attach(("<b>x</b>.sh", command), ("log`${1}`.log", f"{HOSTILE}\nloss=nan\n{HOSTILE}\n"))
    token = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
    page.page.evaluate("document.activeElement.blur()")
    page.page.keyboard.press("/")
    assert page.page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    page.ask(f"KTO loss is nan {HOSTILE} HF_TOKEN={token}")
    page.answered()
    assert token not in page.page.content()
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


def test_the_plots_of_a_run_share_a_crosshair_and_lead_to_the_log(tab: Open) -> None:
    page = tab(width=390, height=800, color_scheme="dark")
    page.open("/zh/")
    page.attach(("train.log", "\n".join(map(str, [*ROWS, *BROKEN]))))
    page.ask("loss 变成 0")
    page.answered()
    page.page.click('[data-tm-tab="evidence"]')
    boxes = page.page.locator("#tm-metrics .tm-plot-box")
    box = boxes.first.bounding_box()
    assert box is not None
    boxes.first.scroll_into_view_if_needed()
    boxes.first.hover(position={"x": box["width"] / 2, "y": 20})
    crosses = page.page.locator("#tm-metrics .tm-cross:visible")
    assert crosses.count() == boxes.count() >= 3
    assert len({cross.evaluate("element => element.style.left") for cross in crosses.all()}) == 1
    assert "train.log:" in page.page.inner_text(".tm-where")
    assert [text for text in page.page.locator(".tm-now").all_inner_texts() if not text.strip()] == []
    slider = page.page.locator("[data-tm-scrub]")
    slider.focus()
    page.page.keyboard.press("End")
    assert "（NaN）" in page.page.locator(".tm-now").first.inner_text().replace("(", "（").replace(")", "）")
    assert "train.log:36" in str(slider.get_attribute("aria-valuetext"))
    page.page.keyboard.press("ArrowLeft")
    assert "train.log:35" in str(slider.get_attribute("aria-valuetext"))
    page.page.check("[data-tm-log]")
    assert page.page.locator(".tm-plot g.linear:visible").count() == 0
    assert page.page.locator(".tm-plot g.log:visible").count() >= 2
    assert page.violations() == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    page.page.locator(".tm-plot figcaption a").first.click()
    row = page.page.evaluate("[document.activeElement.dataset.line, document.activeElement.innerText]")
    assert row[0] == "31"
    assert "'loss': 0.0" in row[1]


def test_two_runs_are_compared_in_the_chat_and_in_the_evidence(tab: Open, served: Served) -> None:
    page = tab(served.plain, height=900)
    page.open()
    page.attach(("good.yaml", GOOD), ("bad.yaml", BAD), ("good.log", log()), ("bad.log", log(broken=16)))
    page.ask("Why does the second one diverge?")
    page.answered()
    assert page.page.locator("#bot .prose h3").first.inner_text() == "What differs from the run that works"
    assert page.page.locator("#tm-compare .tm-compared li", has_text="learning_rate").first.is_visible()
    plot = page.page.locator("#tm-compare .tm-plot").first
    assert plot.locator("g.good, g.bad").count() >= 2
    plot.locator(".tm-plot-box").hover(position={"x": 60, "y": 20})
    assert len(plot.locator(".tm-now > span").all_inner_texts()) == 2
    assert page.violations() == []
