"""A language model of half a million random weights that vLLM can serve: configuration, tokenizer, weights, template.

    python -m tests.vllm.tiny FOLDER

Nothing is downloaded and no torch is needed. The tokenizer is trained on the project's own case pages, so that a prompt
takes about as many tokens as with a real model, Chinese included. What the model writes is noise; it never ends a text
by itself (only a schema or the limit does), so that there is always something to cancel.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

PAGES = Path(__file__).parent.parent.parent / "kb" / "causes"
END = "<|im_end|>"
SPECIAL = ("<|endoftext|>", "<|im_start|>", END, "<tool_call>", "</tool_call>")
VOCABULARY = 4096
CONTEXT = 8192
"""Tokens of prompt and answer together, as the servers here are started."""
LONGEST = 4 * CONTEXT
"""The most that the model could take."""
LAYERS = 2
HEADS, HEAD = 2, 32
"""The smallest size of a head that vLLM's attention has on CPU is 32."""
HIDDEN = HEADS * HEAD
INNER = 2 * HIDDEN
TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n# Tools\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n"
    "{% endif %}"
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n"
    "{%- if message.content is string %}{{ message.content }}"
    "{%- elif message.content %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}"
    "{%- for call in message.tool_calls or [] %}\n<tool_call>\n{{ call.function | tojson }}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make(folder: Path) -> Path:
    """Write the model into ``folder``, which is made where it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = trained()
    tokenizer.save(str(folder / "tokenizer.json"))
    ids = {token: number for number, token in enumerate(SPECIAL)}  # the trainer numbers them first
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "pad_token": SPECIAL[0],
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "chat_template": TEMPLATE,
        },
    )
    _write(folder / "config.json", configuration(ids))
    save(folder / "model.safetensors", dict(weights(list(ids.values()))))
    return folder


def trained() -> Tokenizer:
    """Byte-level pairs, merged as the case pages have them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    pages = sorted(PAGES.rglob("*.md"))
    tokenizer.train_from_iterator((page.read_text(encoding="utf-8") for page in pages), trainer)
    return tokenizer


def configuration(ids: Mapping[str, int]) -> dict[str, object]:
    """What vLLM and transformers read; ``ids`` are the special tokens'."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 1,
        "head_dim": HEAD,
        "max_position_embeddings": LONGEST,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "bos_token_id": ids[SPECIAL[0]],
        "eos_token_id": ids[END],
        "pad_token_id": ids[SPECIAL[0]],
    }


def weights(silent: list[int]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Every tensor with its name. The ``silent`` tokens are never the likeliest."""
    chance = np.random.default_rng(7)

    def drawn(rows: int, columns: int, spread: float = 0.15) -> NDArray[np.float32]:
        return chance.normal(0.0, spread, (rows, columns)).astype(np.float32)

    ones = np.ones(HIDDEN, dtype=np.float32)
    # All wider than usual: else rounding decides which token is taken, and what was asked makes no difference.
    yield "model.embed_tokens.weight", drawn(VOCABULARY, HIDDEN, 1.0)
    for number in range(LAYERS):
        layer = f"model.layers.{number}"
        yield f"{layer}.self_attn.q_proj.weight", drawn(HIDDEN, HIDDEN)
        yield f"{layer}.self_attn.k_proj.weight", drawn(HEAD, HIDDEN)
        yield f"{layer}.self_attn.v_proj.weight", drawn(HEAD, HIDDEN)
        yield f"{layer}.self_attn.o_proj.weight", drawn(HIDDEN, HIDDEN)
        yield f"{layer}.mlp.gate_proj.weight", drawn(INNER, HIDDEN)
        yield f"{layer}.mlp.up_proj.weight", drawn(INNER, HIDDEN)
        yield f"{layer}.mlp.down_proj.weight", drawn(HIDDEN, INNER)
        yield f"{layer}.input_layernorm.weight", ones
        yield f"{layer}.post_attention_layernorm.weight", ones
    yield "model.norm.weight", ones
    head = drawn(VOCABULARY, HIDDEN, 0.3)
    head[silent] = 0.0
    yield "lm_head.weight", head


def save(path: Path, tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """Tensors in the safetensors format: the header's length, the header as JSON, then all numbers."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + b"".join(each.tobytes() for each in tensors.values()))


def _write(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
