"""The tools' arguments. A model fills them in, so every field is bounded; violations are reported to the model."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_CHANGES = 6
"""The most settings changed in one call."""
MAX_PROBLEMS = 3
"""The most problems of one call that are reported to the model."""
Name = Annotated[str, Field(min_length=1, max_length=120)]


class _ToolSchema(BaseModel):
    # A misspelt argument is reported to the model instead of being ignored.
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class SearchCases(_ToolSchema):
    """Search the known cases for a symptom, an error message or an option."""

    query: Annotated[str, Field(min_length=1, max_length=300, description="symptom, error message or option names")]


class GetCase(_ToolSchema):
    """Read one known case in full: cause, fix, what does not help, how to confirm."""

    case_id: Annotated[Name, Field(description="a case's id, as search_cases shows it")]


class CheckChanged(_ToolSchema):
    """Change the pasted configuration in memory and run all checks again: which findings clear, appear, stay."""

    changes: Annotated[
        dict[Name, Annotated[str, Field(max_length=120)] | bool | int | float],
        Field(
            min_length=1,
            max_length=MAX_CHANGES,
            description='option or setting → new value, such as {"attn_implementation": "eager"}; '
            'a package → version, such as {"transformers": "4.44.0"}',
        ),
    ]

    @property
    def values(self) -> dict[str, str]:
        """The values as configuration text."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in self.changes.items()
        }


class LookUpOption(_ToolSchema):
    """Look an option up in a framework's catalogue: whether it exists, since when, its type and default."""

    framework: Annotated[str, Field(min_length=1, max_length=40, description="such as trl, openrlhf, transformers")]
    option: Annotated[Name, Field(description="the option's name")]
    version: Annotated[
        str | None, Field(max_length=40, description="a release; default: the one pasted, else the newest")
    ] = None


class ReadLog(_ToolSchema):
    """Read lines of a pasted text."""

    attachment: Annotated[str, Field(max_length=300, description="its name; empty: the question itself")]
    first_line: Annotated[int, Field(ge=1, le=10_000_000, description="first line, counted from 1")]
    last_line: Annotated[int, Field(ge=1, le=10_000_000, description="last line")]


TOOL_SCHEMAS: dict[str, type[_ToolSchema]] = {
    "search_cases": SearchCases,
    "get_case": GetCase,
    "check_changed": CheckChanged,
    "look_up_option": LookUpOption,
    "read_log": ReadLog,
}

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {**convert_to_openai_tool(form)["function"], "name": name}}
    for name, form in TOOL_SCHEMAS.items()
]
"""The tools as the OpenAI API describes them."""


def problems(error: ValidationError) -> str:
    """The problems of a call, without the values in it."""
    items = error.errors(include_url=False, include_input=False, include_context=False)[:MAX_PROBLEMS]
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in items)[:400]
