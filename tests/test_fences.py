"""Code fences: what opens a block, what closes it, and a fence that a text cannot close."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.every_case import every_case
from trainmedic.kb.fences import fence_after, fence_around, fence_of


@every_case(
    ("line", "fence"),
    [
        ("```bash", ("```", "bash")), ("   ~~~~ a b ", ("~~~~", "a b")), ("    ```", ("", "")), ("``", ("", "")),
        ("```a``` b", ("", "")), ("", ("", "")),
    ],
)  # fmt: skip
def test_a_fence_has_three_marks_and_little_indentation(line: str, fence: tuple[str, str]) -> None:
    assert fence_of(line) == fence


@every_case(("line", "after"), [("````", ""), ("```", "````"), ("~~~~", "````"), ("```` x", "````")])
def test_only_a_bare_fence_of_the_same_mark_and_length_closes(line: str, after: str) -> None:
    assert fence_after(line, "````") == after


@given(text=st.text(alphabet="a`~ \n", max_size=60))
def test_a_text_in_its_fence_is_one_code_block(text: str) -> None:
    fence = fence_around(text)
    tokens = MarkdownIt().parse(f"{fence}\n{text}\n{fence}")
    assert [(token.type, token.content) for token in tokens] == [("fence", f"{text}\n")]
