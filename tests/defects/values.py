"""Lists of defects as a contributor would write them."""

from __future__ import annotations

from pathlib import Path

from trainmedic.kb.audit.defect import Defect, Effect
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Text

ENTRY = """\
- id: trl-3435
  title:
    en: Sequence-level ratios of GRPO are averaged over padding too
    zh: GRPO 的序列级比率把填充位置也算进了平均
  effect: silent
  touches: [GRPOTrainer, importance_sampling_level]
  when: option("importance_sampling_level") == "sequence"
  introduced: "0.20.0"
  fixed: "0.21.0"
  fix: {pull: 3435, commit: 0123456789ab}
  symptoms:
    en: [the GSPO ratio stays near 1 however far the policy moves]
    zh: [GSPO 的 ratio 一直接近 1]
  message: "Expected all tensors to be on the same device*lm_head"
  mechanism: samples-too-far-off-policy
  workaround: {en: Use importance_sampling_level token., zh: 改用 importance_sampling_level token。}
"""


def folder(root: Path, text: str = ENTRY, package: str = "trl", area: str = "rl") -> Path:
    """A folder with one list of defects."""
    (root / package).mkdir(parents=True, exist_ok=True)
    (root / package / f"{area}.yaml").write_text(text, encoding="utf-8")
    return root


def defect(name: str, **parts: object) -> Defect:
    """A defect of the package before the last dash; ``parts`` are fields."""
    values: dict[str, object] = {
        "id": name,
        "package": name.rpartition("-")[0],
        "title": Text(en=f"{name} goes wrong", zh=f"{name} 出错"),
        "effect": Effect.SILENT,
        "touches": (),
        "symptoms": {"en": (), "zh": ()},
        **parts,
    }
    return Defect(**values)  # type: ignore[arg-type]


def pip_list(**versions: str) -> Attachment:
    """What ``pip list`` prints; ``_`` in a name is a dash."""
    rows = "".join(f"{name.replace('_', '-'):<20} {version}\n" for name, version in versions.items())
    return Attachment(
        name="pip-list.txt", content=f"Package              Version\n-------------------- -------\n{rows}"
    )
