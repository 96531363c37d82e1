"""An audit lists the causes that a release ended, whatever kind of page tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.case import load_cases
from trainmedic.ui.auditing import audit

GEMMA = Attachment(
    name="sft.yaml",
    content="stage: sft\nmodel_name_or_path: google/gemma-2-9b\nflash_attn: fa2\ndataset: x\ntemplate: gemma\n",
)


def listed(*inputs: str | Attachment) -> dict[str, bool]:
    return {defect.id: defect.certain for defect in audit(*inputs).defects}


def test_the_release_of_a_page_is_listed_and_its_check_decides() -> None:
    name = "gemma2-flash-attn-softcap-nan"
    assert listed("flash-attn==2.6.1\n")[name] is False
    assert listed("flash-attn==2.6.1\ntransformers==4.43.0\n", GEMMA)[name] is True
    assert name not in listed("flash-attn==2.6.2\n")


def test_a_page_without_a_deciding_check_is_never_certain() -> None:
    assert listed("trl==0.15.2\n")["sft-eos-not-appended"] is False


def test_a_change_that_a_list_has_is_not_listed_twice() -> None:
    found = listed("transformers==4.46.0\n")
    assert "transformers-35207" in found
    assert "trainer-loss-multiplied-by-accumulation" not in found


@pytest.mark.parametrize("line", ['fixed: {trl: "1.0.0"}', "effect: silent"])
def test_a_page_names_the_harm_where_it_names_the_release_without_it(tmp_path: Path, line: str) -> None:
    (tmp_path / "own-cause.md").write_text(
        "---\nid: own-cause\ntitle: {en: A cause}\nfamily: nan-loss\nsources:\n"
        f"  - {{url: 'https://example.org/1', says: reporter, note: n}}\n{line}\nno_rule: none\n---\n"
        "## en\n### Cause\nX.\n"
    )
    assert any("stand together" in str(failure) for failure in load_cases([tmp_path]).failures)
