"""From the paste to the copied patch, in a browser: the five founding incidents in both languages.

    python -m benchmarks.tasks [--chromium PATH]

For each incident the question is pasted, its files are attached, and the answer is sent, read and acted on: time until
the answer is there with its evidence, time to read what comes before the patch (in an answer without one, before its
first list), and time until the patch is in the clipboard. Reading is not measured but modelled: 238 words a minute in
English (Brysbaert 2019, doi:10.1016/j.jml.2019.104047), 255 characters a minute in Chinese (Trauzettel-Klosinski and
Dietz 2012, doi:10.1167/iovs.11-8284). Budget: 10 s in the median for everything together. Exit code 1 if it is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.serving import HOST, Server
from benchmarks.table import Table
from tests.incidents import INCIDENTS, Incident
from trainmedic.ui.loading import prebuild

BUDGET_S = 10.0
WORDS_A_MINUTE, CHARACTERS_A_MINUTE = 238, 255
CJK = "\u2e80"
FOUNDING = tuple(incident for incident in INCIDENTS if not incident.name.endswith("single-class"))
"""Without the variant of the first one."""
BEFORE_PATCH = """() => {
  const prose = [...document.querySelectorAll('#bot .bot-row .prose')].pop();
  const patch = prose.querySelector('code.language-diff'), texts = [];
  for (const element of prose.children) {
    if (patch ? element.contains(patch) : element.matches('h3, ul, ol')) break;
    texts.push(element.innerText);
  }
  return texts.join('\\n');
}"""
LANGUAGES = {"en": "/", "zh": "/zh/"}


def reading_time(text: str) -> float:
    """Seconds to read a text; citation markers are not read."""
    characters = sum(character.isalnum() and character >= CJK for character in text)
    rest = "".join(character if character < CJK else " " for character in text)
    words = sum(any(map(str.isalpha, token)) for token in rest.split())
    return 60 * (words / WORDS_A_MINUTE + characters / CHARACTERS_A_MINUTE)


def task(page: Any, url: str, language: str, incident: Incident) -> tuple[float, float, float]:
    """Seconds until the answer is there, to read it up to its patch, and until the patch is copied."""
    page.goto(f"{url}{LANGUAGES[language]}")
    page.wait_for_selector("#tm-first textarea")
    page.evaluate("text => navigator.clipboard.writeText(text)", incident.en if language == "en" else incident.zh)
    files = [{"name": f.name, "mimeType": "text/plain", "buffer": str(f.content).encode()} for f in incident.files]
    started = time.perf_counter()
    page.focus("#tm-question textarea")
    page.keyboard.press("Control+V")
    page.set_input_files("#tm-question input[type=file]", files)
    page.wait_for_function("n => document.querySelectorAll('#tm-chips-box .tm-chip').length === n", arg=len(files))
    page.press("#tm-question textarea", "Enter")
    page.wait_for_selector(".tm-after[data-answer]")
    answered = time.perf_counter() - started
    text = str(page.evaluate(BEFORE_PATCH))
    started = time.perf_counter()
    if incident.patch_clears:
        page.click("[data-tm-copy] >> nth=0")
        page.wait_for_selector("[data-tm-copy].done")
        if incident.place[0] not in str(page.evaluate("navigator.clipboard.readText()")):
            raise RuntimeError(f"{incident.name}: the clipboard does not hold the patch")
    return answered, reading_time(text), time.perf_counter() - started


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="from the paste to the copied patch")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    chosen = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    prebuild()
    results: dict[str, list[tuple[float, float, float]]] = {language: [] for language in LANGUAGES}
    with TemporaryDirectory() as folder, Server(Path(folder)) as server, sync_playwright() as playwright:
        server.settle(server.client())
        browser = playwright.chromium.launch(executable_path=chosen.chromium, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        url = f"http://{HOST}:{server.port}"
        task(page, url, "en", FOUNDING[0])  # the first answer of a fresh service loads what it needs
        for language in LANGUAGES:
            for incident in FOUNDING:
                timed = task(page, url, language, incident)
                print(f"{language} {incident.name}: {timed[0]:.1f} + {timed[1]:.1f} + {timed[2]:.1f} s")
                results[language].append(timed)
        browser.close()
    table = Table("from the paste to the copied patch")
    for language, figures in results.items():
        for place, what in enumerate(("until the answer is there", "reading up to the patch", "copying the patch")):
            table.add(f"{what} ({language})", [values[place] for values in figures], "s")
        table.add(f"all together ({language})", [sum(values) for values in figures], "s", BUDGET_S)
    return table.print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
