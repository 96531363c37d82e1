"""The evidence as HTML: what it shows, in which order, and that nothing pasted gets out of its place."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from trainmedic.kb.model.place import Attachment, Span
from trainmedic.service import access
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.schema import Answer, SeriesView, StepView
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.chat import evidence, sources
from trainmedic.ui.chat.excerpt import CONTEXT, WIDEST, excerpts
from trainmedic.ui.chat.plots import Plot, RunPlots, overlaid, run_plots
from trainmedic.ui.chat.texts import HERE, LANGUAGES, Language, examples, words
from trainmedic.ui.chat.uploads import WaitingFile

HOSTILE = "</code><img src=//evil.example onerror=x()><script>y()</script>\"'${z}{{z}}"
VOID = {"img", "br", "input", "meta", "link", "hr"}


class Outline(HTMLParser):
    """Tags as they open; fails where one closes that is not the innermost."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag


def outline(html: str) -> Outline:
    parser = Outline()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def asked(advisor: Advisor, question: str, *files: Attachment) -> tuple[Answer, dict[str | None, str]]:
    prepared = advisor.prepare(Ask(question=question, attachments=files))
    return assemble(prepared), {source.name: source.text for source in prepared.context.evidence.sources}


def span(line: int, column: int, end: int, attachment: str | None = "a.sh", end_line: int | None = None) -> Span:
    return Span(attachment=attachment, line=line, column=column, end_line=end_line or line, end_column=end, text="?")


def test_both_languages_have_the_same_words_with_the_same_blanks() -> None:
    def shape(value: object) -> object:
        if isinstance(value, dict):
            return {key: shape(each) for key, each in value.items()}
        if isinstance(value, list):
            return sorted(each["id"] for each in value)
        return sorted(re.findall(r"\{\w+\}", str(value)))

    assert shape(words("en")) == shape(words("zh"))


def test_every_word_that_a_template_uses_is_there_and_every_word_is_used() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in sorted((HERE / "templates").rglob("*.html")))
    folders = (HERE.parent, Path(access.__file__).parent)
    code = "".join(path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.rglob("*.py")))
    assert {name for name in re.findall(r"\bt\.(\w+)", pages) if name not in words("en")} == set()
    made = re.compile(
        "^(verdict|confidence|grade|support|reason|kb|review|state|effect|series|working|origin)_|^(error|warning|info|cannot_tell)$"
    )
    used = set(re.findall(r"\bt\.(\w+)", pages)) | set(re.findall(r"[\"'](\w+)[\"']", code))
    unused = [name for name in words("en") if name not in used]
    assert [name for name in unused if not made.match(name)] == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_every_example_gives_a_whole_page(number: int, language: Language, advisor: Advisor) -> None:
    example = examples(language)[number]
    answer, texts = asked(advisor, example.question, *example.files)
    html = evidence.panel(answer, texts, language) + sources.tail(answer, texts, language)
    page = outline(html)
    ids = [attributes["id"] for _, attributes in page.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {"tm-findings", "tm-causes", "tm-metrics"} <= set(ids)
    cited = [
        attributes for tag, attributes in page.seen if (attributes.get("id") or "").startswith("tm-c") and tag == "li"
    ]
    assert len(cited) == len(answer.citations)
    assert {each["data-tm-at"] for each in cited if "data-tm-at" in each} <= set(ids)
    marked = {attributes.get("data-line") for tag, attributes in page.seen if attributes.get("class") == "hit"}
    assert {each["data-tm-line"] for each in cited if "data-tm-line" in each} <= marked


def seen_words(html: str) -> list[str]:
    """What a reader sees of a page before opening anything; two Chinese characters count as a word."""
    for hidden in ("textarea", "svg"):
        html = re.sub(rf"<{hidden}.*?</{hidden}>", "", html, flags=re.DOTALL)
    html = re.sub(r"<(li|section|div)\b[^>]* hidden>.*?</\1>", "", html, flags=re.DOTALL)
    while (
        opened := re.sub(
            r"<details(?![^>]* open)[^>]*>((?:(?!<details).)*?)</details>", summary_of, html, flags=re.DOTALL
        )
    ) != html:
        html = opened
    text = re.sub(r"<[^>]+>", " ", html)
    return re.findall(r"[\u4e00-\u9fff]{1,2}|[^\s\u4e00-\u9fff]+", text)


def summary_of(details: re.Match[str]) -> str:
    found = re.search(r"<summary>.*?</summary>", details[1], re.DOTALL)
    return found[0] if found else ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_evidence_is_short_and_says_nothing_twice(language: Language, advisor: Advisor) -> None:
    example = next(each for each in examples(language) if each.id == "kto")
    answer, texts = asked(advisor, example.question, *example.files)
    rules = advisor.knowledge.rules
    html = evidence.panel(answer, texts, language, rules) + sources.tail(answer, texts, language, rules)
    assert len(seen_words(html)) <= 450
    diffs = re.findall(r'<div class="tm-diff".*?</table>', html, re.DOTALL)
    assert len(diffs) == len(set(diffs)) == 1
    lines = re.findall(r'data-file="([^"]*)"|data-line="(\d+)"><td class="no">', html)
    where, shown = "", []
    for file, line in lines:
        where = file or where
        shown += [(where, line)] if line else []
    assert len(shown) == len(set(shown)) > 10
    said = [statement for statement in re.findall(r"<li>.*?</li>", html, re.DOTALL) if "tm-word" in statement]
    first = html[html.index('class="tm-node first"') :].split("</ul>")[0]
    assert [each for each in said if first.count(each) > 1] == []


def test_a_finding_that_no_cause_rests_on_is_folded_away_once_a_cause_is_found(advisor: Advisor) -> None:
    example = examples("en")[0]
    answer, _ = asked(advisor, example.question, *example.files)
    related, aside, unsure = evidence.sorted_findings(answer)
    named = {rule for cause in answer.causes for rule in cause.findings}
    assert {each.rule_id for each in related} <= named
    assert aside
    assert not {each.rule_id for each in aside} & named
    assert {each.status for each in unsure} <= {"cannot_tell"}


def test_what_is_not_of_the_first_cause_is_no_patch_of_the_answer(advisor: Advisor) -> None:
    example = examples("en")[0]
    answer, texts = asked(advisor, example.question, *example.files)
    mine = next(
        finding for finding in answer.findings if finding.patch and finding.rule_id in answer.causes[0].findings
    )
    foreign = replace(mine, rule_id="another", patch="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    silent = replace(mine, clears=(), patch="--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n")
    own, others = evidence.patches(answer, (foreign, silent, mine))
    assert (own, others) == ([mine], [foreign, silent])
    found, aside, _ = evidence.shown_findings(replace(answer, findings=(foreign, mine)), texts, None)
    assert [(each.finding.rule_id, each.own) for each in (*found, *aside)] == [(mine.rule_id, True), ("another", False)]
    html = evidence.panel(replace(answer, findings=(foreign,)), texts, "en")
    assert (
        html.index("Also noticed") < html.index('id="tm-rule-another"') < html.index("data-tm-copy") < html.index("+b")
    )


def test_a_finding_about_the_symptom_asked_about_is_not_called_unrelated(advisor: Advisor) -> None:
    rules = advisor.knowledge.rules
    for example in examples("en")[:2]:
        answer, _ = asked(advisor, example.question, *example.files)
        told = {signal.kind for signal in answer.signals}
        _, aside, _ = evidence.sorted_findings(answer, rules)
        assert [each.rule_id for each in aside if told & set(rules.get(each.rule_id).symptoms)] == []  # type: ignore[union-attr]


def test_nothing_pasted_becomes_markup(advisor: Advisor) -> None:
    shown = "</code><img src=//evil.example>${z}{{z}}"
    command = str(examples("en")[0].files[0].content).replace("/data/feedback.jsonl", f"'{shown}'")
    files = (
        Attachment(name=f"x{HOSTILE}.sh", content=command),
        Attachment(name="y.log", content=f"{HOSTILE} loss=nan"),
    )
    answer, texts = asked(advisor, f"KTO loss is nan {HOSTILE}", *files)
    steps = [StepView(number=1, tool=HOSTILE, what=HOSTILE, arguments={HOSTILE: HOSTILE}, result=HOSTILE)]
    chips = [WaitingFile(name=HOSTILE, kind=HOSTILE, lines=1, read=True, index=0)]
    for html in (
        evidence.panel(answer, texts, "en"),
        sources.tail(answer, texts, "en"),
        evidence.steps(steps, "en"),
        evidence.chips(chips, "en"),
    ):
        seen = outline(html).seen
        assert not {tag for tag, _ in seen} & {"img", "script"}
        assert not [name for _, attributes in seen for name in attributes if name.startswith("on")]
    assert shown.replace("<", "&lt;").replace(">", "&gt;") in evidence.panel(answer, texts, "en")


def test_an_excerpt_shows_neighbours_and_a_gap_and_marks_the_exact_columns() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 31))
    (found,) = excerpts([span(20, 6, 8), span(3, 1, 5)], {"a.sh": text})
    numbers = [row.number for row in found.rows if not row.gap]
    assert numbers == [*range(3 - CONTEXT, 3 + CONTEXT + 1), *range(20 - CONTEXT, 20 + CONTEXT + 1)]
    marks = {row.number: [(p.text, p.mark) for p in row.pieces if p.mark] for row in found.rows if row.hit}
    assert marks == {3: [("line", "more")], 20: [("20", "first")]}
    assert [row.gap for row in found.rows].count(True) == 1
    assert found.place == "20:6"


def test_a_long_line_is_cut_around_its_mark() -> None:
    text = "x" * 5_000 + "BAD" + "y" * 5_000
    (found,) = excerpts([span(1, 5_001, 5_004)], {"a.sh": text})
    (row,) = found.rows
    assert "".join(piece.text for piece in row.pieces if piece.mark) == "BAD"
    assert sum(len(piece.text) for piece in row.pieces) <= WIDEST + 2


def plotted(*values: float, **fields: object) -> tuple[RunPlots, Plot]:
    """One series as drawn: its run, and its plot."""
    steps = tuple(range(1, len(values) + 1))
    series = SeriesView(name="loss", attachment="a.log", **{"steps": steps, "values": values, **fields})  # type: ignore[arg-type]
    (run,) = run_plots([series], words("en"))
    return run, run.plots[0]


def test_a_series_that_breaks_is_drawn_up_to_there_and_said_in_words() -> None:
    run, plot = plotted(1.0, 0.5, math.nan, math.nan, lines=(11, 12, 13, 14), marked=3)
    assert plot.onset is not None
    assert (plot.onset.kind, plot.onset.step, plot.onset.line, plot.low, plot.high) == ("nan", 3, 13, "0.5", "1")
    assert len(plot.traces[0].linear.paths) == 1
    assert [(band.kind, band.x) for band in plot.bands] == [("nan", plot.onset.x)]
    assert plot.label.endswith("not a number from step 3")
    assert [row for row in plot.table if row[2]] == [(3, "NaN", True)]
    assert (run.summary[0].first, run.summary[0].onset, run.summary[0].last) == ("1 (1)", "NaN (3)", "NaN (4)")


@pytest.mark.parametrize(
    "values", [[0.0], [1.0, 1.0, 1.0], [math.nan, math.nan, math.nan], [1e308, -1e308, 0.0], [math.inf, 1.0, -math.inf]]
)
def test_no_series_breaks_the_picture(values: list[float]) -> None:
    _, plot = plotted(*values)
    for curve in (plot.traces[0].linear, plot.traces[0].log):
        numbers = [float(number) for path in (curve.paths if curve else ()) for number in re.findall(r"-?[\d.]+", path)]
        assert all(0 <= number <= 1000 for number in numbers)


def test_a_zero_that_stands_for_nan_is_no_part_of_the_curve() -> None:
    _, plot = plotted(1.0, 0.5, 0.0, 0.0, hidden=(2, 3))
    assert (plot.low, [band.kind for band in plot.bands]) == ("0.5", ["filtered"])
    assert plot.traces[0].values == "1|0.5|0 (NaN)|0 (NaN)"
    assert "stand for NaN from step 3" in plot.label


def test_points_too_dense_for_a_line_are_an_area_with_a_line_through_it() -> None:
    sparse, dense = (plotted(*(1.0 + number % 2 for number in range(count)))[1] for count in (40, 400))
    assert sparse.traces[0].linear.areas == ()
    (area,), (line,) = dense.traces[0].linear.areas, dense.traces[0].linear.paths
    assert {y.split(" ")[1] for y in area.strip("MZ").split("L")} == {"7.0", "93.0"}
    assert {y.split(" ")[1] for y in line.strip("M").split("L")} == {"50.0"}


def test_the_onset_is_named_by_what_the_axis_counts() -> None:
    _, plot = plotted(1.0, 0.5, math.nan, steps=(11, 12, 13), lines=(11, 12, 13), unit="line")
    assert plot.label.endswith("not a number from line 13")


def test_a_run_whose_steps_go_back_is_drawn_over_the_lines_of_its_log() -> None:
    run, _ = plotted(4.0, 3.0, 3.5, 3.0, steps=(1, 2, 1, 2), lines=(10, 20, 30, 40))
    assert (run.unit, run.first, run.last, run.count) == ("line", 10, 40, 4)


def test_two_runs_are_drawn_over_one_scale() -> None:
    good, bad = (SeriesView(name="loss", attachment=None, steps=(1, 2), values=values) for values in ((1, 0), (1, 5)))
    run = overlaid([good], [bad], words("en"))
    assert run is not None
    assert ([trace.side for trace in run.plots[0].traces], run.plots[0].high) == (["good", "bad"], "5")
    assert overlaid([good], [], words("en")) is None
