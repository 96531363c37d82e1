"""The tools' arguments. A model fills them in, so every field is bounded; violations are reported to the model."""

from __future__ import annotations

from collections.abc import Mapping
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


Package = Annotated[str, Field(min_length=1, max_length=60, description="as pip shows it, such as trl")]
Release = Annotated[str | None, Field(max_length=40, description="a release; default: the user's own")]
Version = Annotated[str, Field(min_length=1, max_length=40, description="a release, such as 0.16.0")]
File = Annotated[str, Field(max_length=300, description="a file such as trl/trainer/grpo_trainer.py")]
Symbol = Annotated[str, Field(max_length=200, description="a class, function or option: GRPOTrainer.compute_loss")]


class GrepSource(_ToolSchema):
    """Search the source code of a release of a package for a regular expression, line by line."""

    package: Package
    version: Release = None
    pattern: Annotated[str, Field(min_length=1, max_length=300, description="a regular expression")]
    below: Annotated[str, Field(max_length=300, description="only files whose path begins so")] = ""


class ReadSource(_ToolSchema):
    """Read the source code of a release: a symbol, or lines of a file."""

    package: Package
    version: Release = None
    path: File = ""
    symbol: Symbol = ""
    lines: Annotated[str, Field(max_length=20, description="lines of the file, such as 800-840")] = ""


class DiffSource(_ToolSchema):
    """Code changes of a symbol or file between two releases."""

    package: Package
    before: Version
    after: Version
    path: File = ""
    symbol: Symbol = ""


class Changes(_ToolSchema):
    """Changes between two releases: options, defaults, messages, functions."""

    package: Package
    before: Version
    after: Version
    about: Annotated[str, Field(max_length=120, description="only what names this, such as an option")] = ""


TOOL_SCHEMAS: dict[str, type[_ToolSchema]] = {
    "search_cases": SearchCases,
    "get_case": GetCase,
    "check_changed": CheckChanged,
    "look_up_option": LookUpOption,
    "read_log": ReadLog,
    "grep_source": GrepSource,
    "read_source": ReadSource,
    "diff_source": DiffSource,
    "changes": Changes,
}


def described(forms: Mapping[str, type[BaseModel]]) -> list[dict[str, Any]]:
    """The tools as the OpenAI API describes them."""
    functions = ({**convert_to_openai_tool(form)["function"], "name": name} for name, form in forms.items())
    return [{"type": "function", "function": each} for each in functions]


TOOLS = described(TOOL_SCHEMAS)


def problems(error: ValidationError) -> str:
    """The problems of a call, without the values in it."""
    items = error.errors(include_url=False, include_input=False, include_context=False)[:MAX_PROBLEMS]
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in items)[:400]
