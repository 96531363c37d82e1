"""Model families by name, the way their makers name them.

``gemma2`` needs a size behind it (``gemma-2-9b``): ``gemma-2b`` is the first Gemma, without attention soft-capping.
"""

from __future__ import annotations

import re

_SEP = r"[-_ .:]?"
_FAMILIES: tuple[tuple[str, str], ...] = (
    ("gemma3", r"(?:shieldgemma-2-4b|medgemma)"),
    ("gemma2", r"(?:shieldgemma|datagemma|txgemma)"),
    ("qwen3", rf"deepseek{_SEP}r1{_SEP}(?:\d+{_SEP})?qwen3"),
    ("qwen2.5", rf"deepseek{_SEP}r1{_SEP}distill{_SEP}qwen"),
    ("llama3", rf"deepseek{_SEP}r1{_SEP}distill{_SEP}llama"),
    ("gemma4", rf"gemma{_SEP}4{_SEP}(?:e?\d+b)(?![a-z0-9])"),
    ("gemma2", rf"(?:gemma{_SEP}2{_SEP}(?:jpn{_SEP})?(?:2|9|27)b|paligemma{_SEP}2{_SEP}(?:3|10|28)b)(?![a-z0-9])"),
    ("gemma3", rf"gemma{_SEP}3n?(?:{_SEP}(?:e?\d+[bm]|270m))(?![a-z0-9])"),
    ("gemma", rf"(?:code)?gemma(?:1\.1)?{_SEP}(?:1\.1{_SEP})?(?:2|7)b(?![a-z0-9])"),
    ("qwen3.5", rf"qwen{_SEP}3[._]5"),
    ("qwen3", rf"qwen{_SEP}3(?![\d])"),
    ("qwen2.5", rf"qwen{_SEP}2[._]5"),
    ("qwen2", rf"qwen{_SEP}2(?![\d.]\d)|qwq|qvq|qwen2(?![\d.])"),
    ("qwen1.5", rf"qwen{_SEP}1[._]5"),
    ("qwen", rf"qwen{_SEP}(?:chat|vl|\d+(?:_\d+)?b)"),
    ("llama4", rf"llama{_SEP}4(?!\d)(?!{_SEP}\d*b)"),
    ("llama3", rf"llama{_SEP}3(?!\d)(?![-_ ]?b)"),
    ("llama2", rf"llama{_SEP}2(?!\d)(?![-_ ]?b)|codellama|tinyllama|vicuna"),
    ("llama", rf"llama{_SEP}(?:hf{_SEP})?(?:7|13|30|33|65)b"),
    ("mixtral", r"mixtral"),
    (
        "mistral",
        rf"mistral(?!ai/mixtral)(?:{_SEP}(?:\d|nemo|small|large|instruct))|mistral-7b|ministral|magistral|devstral|zephyr-7b",
    ),
    ("deepseek-v3", rf"deepseek{_SEP}(?:llm{_SEP})?(?:v3|r1(?!{_SEP}distill))"),
    ("deepseek-v2", rf"deepseek{_SEP}(?:coder{_SEP})?v2"),
    ("deepseek", rf"deepseek{_SEP}(?:llm|coder|math|moe)"),
    ("phi4", rf"phi{_SEP}4"),
    ("phi3", rf"phi{_SEP}3"),
    ("phi2", rf"phi{_SEP}(?:2|1[._]5)"),
    ("glm4.5", rf"glm{_SEP}4[._][5-9]"),
    ("glm4", rf"(?:chat)?glm{_SEP}4"),
    ("chatglm3", rf"chatglm{_SEP}3"),
    ("chatglm2", rf"chatglm{_SEP}2"),
    ("chatglm", r"chatglm-6b"),
    ("minicpm-v", rf"minicpm{_SEP}[vo](?![a-z])"),
    ("minicpm4", rf"minicpm{_SEP}4(?!\d*b)"),
    ("minicpm3", rf"minicpm{_SEP}3(?!\d*b)"),
    ("minicpm", rf"minicpm{_SEP}(?:moe|s|\d)"),
    ("internlm3", rf"internlm{_SEP}3"),
    ("internlm2", rf"internlm{_SEP}2"),
    ("baichuan2", rf"baichuan{_SEP}2"),
    ("baichuan", rf"baichuan{_SEP}(?:7|13)b"),
    ("yi", rf"(?<![a-z])yi{_SEP}(?:1[._]5{_SEP})?\d+b"),
    ("bloom", r"bloomz?(?![a-z])"),
    ("gpt-oss", rf"gpt{_SEP}oss"),
)
_COMPILED = tuple(
    (name, re.compile(rf"(?<![a-z0-9])(?:{pattern})" if name != "gemma2" else pattern)) for name, pattern in _FAMILIES
)
_TYPES = {
    "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3", "gemma3_text": "gemma3", "gemma3n": "gemma3",
    "gemma3n_text": "gemma3", "gemma4": "gemma4", "gemma4_text": "gemma4", "qwen": "qwen", "qwen2": "qwen2",
    "qwen2_moe": "qwen2", "qwen2_vl": "qwen2", "qwen2_5_vl": "qwen2.5", "qwen3": "qwen3", "qwen3_moe": "qwen3",
    "qwen3_vl": "qwen3", "qwen3_5": "qwen3.5", "qwen3_5_moe": "qwen3.5", "llama4": "llama4", "phi": "phi2",
    "internlm3": "internlm3", "minicpm": "minicpm", "minicpm3": "minicpm3", "glm4_moe": "glm4.5", "bloom": "bloom",
    "gpt_oss": "gpt-oss", "ministral": "mistral", "llama": "llama", "mistral": "mistral", "mixtral": "mixtral",
    "deepseek_v2": "deepseek-v2", "deepseek_v3": "deepseek-v3", "phi3": "phi3", "internlm2": "internlm2",
    "baichuan": "baichuan2", "glm4": "glm4",
}  # fmt: skip


def model_family(text: str) -> str | None:
    """The family that a model id, path or mention names, or None. The last part of a path decides first."""
    parts = [part for part in text.strip().rstrip("/").split("/") if part]
    for part in reversed(parts):
        found = find_family(part)
        if found is not None:
            return found[0]
    return None


def find_family(text: str) -> tuple[str, int, int] | None:
    """(family, start, end) of the first family named in ``text``; on the same spot the more specific one."""
    lowered = text.lower()
    best: tuple[int, int, str, int] | None = None
    for order, (name, pattern) in enumerate(_COMPILED):
        match = pattern.search(lowered)
        if match and (best is None or (match.start(), order) < best[:2]):
            best = (match.start(), order, name, match.end())
    return (best[2], best[0], best[3]) if best else None


def family_of_type(model_type: str) -> str | None:
    """The family of a ``model_type`` in a model's config.json."""
    return _TYPES.get(model_type.strip().lower())
