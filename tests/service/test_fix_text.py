"""A fix begins with what concerns the user's release and framework."""

from __future__ import annotations

from dataclasses import replace

from tests.every_case import every_case
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Text
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.answer.fix_text import concerning, on_a_line, without_diffs

CASE = Case(
    id="a",
    title=Text(en="a", zh="a"),
    kind="fault",
    family="numerics",
    frameworks=("openrlhf",),
    evidence="reported",
    reviewed="2026-01-01",
    sections={},
    sources=(),
)
COMMAND = Attachment(name="run.sh", content="python -m openrlhf.cli.train_kto --micro_train_batch_size 2\n")


@every_case(
    ("version", "entry", "stays"),
    [
        ("0.3.3", "0.1.9 to 0.3.3: leave it out.", True), ("0.3.4", "0.1.9 to 0.3.3: leave it out.", False),
        ("0.3.4", "0.1.9–0.3.3：去掉它。", False), ("0.3.3", "0.3.4 and later: delete it.", False),
        ("0.3.3", "0.3.4 及以后：删除。", False), ("0.3.4", "0.3.4 及以后：删除。", True),
        ("0.3.3", "Before 0.3.3: add it.", False), ("0.3.3", "OpenRLHF 0.3.3 之前：加上。", False),
        ("0.3.3", "From 0.3.4: add it.", False), ("0.3.3", "OpenRLHF up to 0.3: add it.", True),
        ("0.4.0", "OpenRLHF up to 0.3: add it.", False), ("0.3.3", "OpenRLHF 0.4.0: add it.", True),
        ("0.3.3", "peft before 0.2: add it.", True), ("0.3.3", "LLaMA-Factory: set `bf16: true`.", False),
        ("0.3.3", "transformers: set it in the configuration.", True),
        ("0.3.3", "Better: upgrade to 0.3.5 or later.", True), ("0.3.3", "`0.3.4 and later: x` is no range.", True),
        ("", "0.3.4 and later: delete it.", True),
    ],
)  # fmt: skip
def test_what_is_certainly_for_another_release_or_framework_comes_last(version: str, entry: str, stays: bool) -> None:
    versions = Attachment(name="pip.txt", content=f"openrlhf=={version}\n" if version else "")
    text = f"First this:\n\n- Keep this.\n- {entry}\n\n  ```\n  - code\n  ```\n\nThen this."
    here, elsewhere = concerning(text, CASE, parse("", (COMMAND, versions)))
    assert (entry in here, entry in elsewhere) == (stays, not stays)
    assert "Keep this." in here
    assert here.startswith("First this:")
    assert here.endswith("Then this.")
    assert ("- code" in here) is stays


def test_a_fix_that_is_only_for_other_releases_stays_as_it_is() -> None:
    text = "- 0.9.0 and later: do this."
    versions = Attachment(name="pip.txt", content="openrlhf==0.3.3\n")
    assert concerning(text, CASE, parse("", (COMMAND, versions))) == (text, "")


def test_releases_without_a_package_are_those_of_the_only_affected_one() -> None:
    case = replace(CASE, frameworks=("openrlhf", "trl"), affected={"deepspeed": "<0.9"})
    versions = Attachment(name="pip.txt", content="openrlhf==0.3.3\ndeepspeed==0.9.5\n")
    here, elsewhere = concerning("- Do this.\n- Before 0.9: do that.", case, parse("", (COMMAND, versions)))
    assert (here, elsewhere) == ("- Do this.", "- Before 0.9: do that.")


def test_diffs_of_other_files_are_left_out_and_other_code_stays() -> None:
    diff = "```diff\n-   --vanilla_loss\n+   --bf16\n```"
    text = f"Drop it.\n\n{diff}\n\n```bash\npip install -U trl\n```\nThen:\n~~~diff\n-a\n~~~"
    assert without_diffs(text) == "Drop it.\n\n\n```bash\npip install -U trl\n```\nThen:"
    assert without_diffs("no code") == "no code"


@every_case(
    ("text", "line"),
    [
        (
            "Raise it:\n```diff\n-  --max_length 2048 \\\n+  --max_length 8192 \\\n```\nElse wait.",
            "Raise it:\n`--max_length 8192`\nElse wait.",
        ),
        ("- Ampere:\n  ```diff\n   bf16: true\n  -fp16: true\n  ```", "- Ampere:\nleave out `fp16: true`"),
        ("Ampere:\n```diff\n bf16: true\n-fp16: true\n```", "Ampere:\nleave out `fp16: true`"),
        ("So:\n```json\n{}\n```\nThen that.", "So:\nThen that."),
        ("```diff\n+a: 1\n+b: 2\n+c: 3\n+d: 4\n```", ""),
    ],
)
def test_a_small_diff_is_told_within_a_line(text: str, line: str) -> None:
    assert on_a_line(text, "en") == line
