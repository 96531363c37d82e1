"""Screenshots against the text that they show: characters read right, and findings that are the same.

    python -m benchmarks.pictures [COUNT]

Examples of rule pages (configurations, commands, tracebacks, logs) are rendered as a terminal or an editor shows them:
every second one dark, every fourth one in a font for Chinese, under a Chinese sentence. Needs the extra ``pictures``.
Budgets: 98 % of the characters, and the findings of 18 out of 20. Exit code 1 if one is missed.
"""

from __future__ import annotations

import io
import sys
import time
from difflib import SequenceMatcher
from statistics import mean

from PIL import Image, ImageDraw, ImageFont

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.examples import examples_of
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.text import pictures
from trainmedic.ui.checking import examine

COUNT = 20
LINES = range(3, 41)
WIDTH = 118
LEAST_RIGHT, LEAST_SAME = 0.98, 0.9
SIZE, SPACING, MARGIN = 16, 22, 20
LATIN = "DejaVuSansMono.ttf"
CHINESE = "wqy-microhei.ttc"
SENTENCE = "训练报错，求助："
NAME = "shot.png"


def rendered(text: str, *, dark: bool, font: str = LATIN) -> bytes:
    """A PNG of a text."""
    drawn = ImageFont.truetype(font, SIZE, index=int(font == CHINESE))  # the one of fixed width
    lines = text.split("\n")
    width = int(max(drawn.getlength(line) for line in lines)) + 2 * MARGIN
    paper, ink = ((24, 24, 28), (220, 220, 220)) if dark else ((255, 255, 255), (30, 30, 30))
    picture = Image.new("RGB", (width, SPACING * len(lines) + 2 * MARGIN), paper)
    draw = ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        draw.text((MARGIN, MARGIN + SPACING * number), line, font=drawn, fill=ink)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def incidents(count: int) -> list[str]:
    """Examples on which a rule fires, spread over all rules."""
    texts = [
        str(example.attachments[0].content).rstrip()
        for rule in load_rules().rules
        for example in examples_of(rule)
        if example.kind == "Fires" and len(example.attachments) == 1 and not example.question.strip()
    ]
    fitting = [t for t in texts if t.count("\n") + 1 in LINES and max(map(len, t.split("\n"))) <= WIDTH]
    found = [text for text in fitting if rules_that_fire(Attachment(name=NAME + pictures.MARK, content=text))]
    return found[:: max(1, len(found) // count)][:count]


def rules_that_fire(attachment: Attachment) -> frozenset[str]:
    return frozenset(finding.rule_id for finding in examine((attachment,), ())[1].fired)


def right(text: str, read: str) -> float:
    """The share of a text's characters, blanks aside, that were read in their order."""
    text, read = ("".join(each.split()) for each in (text, read))
    blocks = SequenceMatcher(None, text, read, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(len(text), len(read))


def main(count: int = COUNT) -> int:
    shares, same, seconds = [], 0, []
    for number, text in enumerate(incidents(count)):
        chinese = number % 4 == 3
        shown = f"{SENTENCE}\n{text}" if chinese else text
        picture = rendered(shown, dark=number % 2 == 0, font=CHINESE if chinese else LATIN)
        began = time.process_time()
        read = pictures.read(picture)
        seconds.append(time.process_time() - began)
        shares.append(right(shown, read.text))
        expected = rules_that_fire(Attachment(name=NAME + pictures.MARK, content=shown))
        found = rules_that_fire(Attachment(name=NAME + pictures.MARK, content=read.text))
        same += found == expected
        if found != expected or shares[-1] < LEAST_RIGHT:
            print(f"{shares[-1]:.3f} without {sorted(expected - found)}, with {sorted(found - expected)}\n{read.text}")
    print(f"characters read right: {mean(shares):.4f} on average, {min(shares):.4f} at least")
    print(f"same findings: {same} of {len(shares)}; {mean(seconds):.1f} s on average, {max(seconds):.1f} at most")
    return int(mean(shares) < LEAST_RIGHT or same < LEAST_SAME * len(shares))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
