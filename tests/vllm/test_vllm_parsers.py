"""The parsers that ``trainmedic llm`` names are those that the installed vLLM knows."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.vllm import environment
from trainmedic.ui.vllm.families import families

LIST = """
import json
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager
print(json.dumps({"tools": ToolParserManager.list_registered(), "reasoning": ReasoningParserManager.list_registered()}))
"""


@pytest.mark.parametrize("kind", ["tools", "reasoning"])
def test_every_parser_of_the_table_is_registered_unless_the_row_says_that_it_is_newer(kind: str) -> None:
    done = subprocess.run([environment.python(), "-c", LIST], capture_output=True, text=True, check=True)
    registered = json.loads(done.stdout.splitlines()[-1])[kind]
    rows = [row for row in families() if getattr(row, kind)]
    assert {getattr(row, kind) for row in rows if not row.since} <= set(registered)
    assert {getattr(row, kind) for row in rows if row.since}.isdisjoint(registered), "no longer newer: `since` can go"
