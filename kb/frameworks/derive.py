"""Settings that follow from other settings: what a framework turns on by itself, presets, and words for the same thing.

Sources: the frameworks' own code at the tags named beside each function; the facts are also on the pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.frameworks.catalogue import around
from trainmedic.kb.frameworks.profiles import (
    BASE,
    CALLS,
    HF_TRAINERS,
    INHERITS,
    LAUNCHED,
    SCRIPTED,
    Implication,
    Profile,
    profiles,
)
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, Setting, Unresolved, Value, VersionFact
from trainmedic.kb.versions import version_key

_PRESET = regex(r"(?:^|[^a-z])z(?:ero)?_?-?([0-3])(?![0-9])", re.IGNORECASE)
_FULL = ("full", "freeze", "none", "longlora_full")


@dataclass(slots=True)
class Draft:
    """A configuration while its settings are completed. Written settings are never replaced.

    ``unread``: nothing was read of the release that it runs with, so what its code does is not known.
    """

    framework: str
    algorithm: str | None
    stage: str | None
    releases: Sequence[str]
    versions: Mapping[str, VersionFact]
    partial: bool
    options: Sequence[Option]
    settings: dict[str, Setting]
    model_family: str | None = None
    unread: bool = False

    @property
    def profile(self) -> Profile | None:
        return profiles().get(self.framework)

    def value(self, name: str) -> Value:
        """A setting's value; None if unset or unknown (`known` tells the two apart)."""
        setting = self.settings.get(name)
        return setting.value if setting else None

    def known(self, name: str) -> bool:
        """Whether the setting exists and is not an unresolved variable."""
        return name in self.settings and not isinstance(self.settings[name].value, Unresolved)

    def written(self, name: str) -> bool:
        setting = self.settings.get(name)
        return setting is not None and setting.option is not None

    def put(self, name: str, value: Value, source: str, origin: str | None = None) -> None:
        """Set ``name``. It counts as written if the setting ``origin`` was."""
        base = self.settings.get(origin) if origin else None
        self.settings[name] = Setting(
            name=name,
            value=value,
            option=base.option if base else None,
            source=source,
            key=base.key if base else "",
        )

    def all_releases(self, low: str | None = None, below: str | None = None) -> bool:
        return (
            bool(self.releases)
            and not self.unread
            and all(
                (low is None or version_key(release) >= version_key(low))
                and (below is None or version_key(release) < version_key(below))
                for release in self.releases
            )
        )

    def drop(self, *names: str) -> None:
        """Remove defaults (never what was written)."""
        for name in names:
            if name in self.settings and not self.written(name):
                del self.settings[name]


def derive(draft: Draft) -> None:
    for step in _STEPS:
        step(draft)


def _launch_config(draft: Draft) -> None:
    """An accelerate or DeepSpeed file that is named but not attached may set these, so their defaults are uncertain."""
    scopes = {option.scope for option in draft.options}
    named = any(option.scope == "launcher" and option.key in ("config_file", "config-file") for option in draft.options)
    if draft.framework in HF_TRAINERS and named and scopes.isdisjoint(LAUNCHED):
        draft.drop("deepspeed", "fsdp", "bf16", "fp16")


def _openrlhf(draft: Draft) -> None:
    """OpenRLHF: packing and ring attention need flash attention (openrlhf/cli, all tags)."""
    if draft.framework != "openrlhf" or draft.unread:
        return
    ring = draft.value("sequence_parallel")
    if draft.value("packing") is True and draft.settings.get("attention") is not None:
        _implied_flash(draft, "packing")
    elif draft.value("packing") is True:
        draft.put("attention", "flash2", "packing_samples turns flash attention on", "packing")
    elif isinstance(ring, int) and ring > 1 and draft.value("attention") in (None, "eager"):
        _implied_flash(draft, "sequence_parallel")


def _implied_flash(draft: Draft, origin: str) -> None:
    if draft.value("attention") == "eager" and not _written_eager(draft):
        draft.settings.pop("attention", None)
        draft.put("attention", "flash2", f"{draft.settings[origin].key} turns flash attention on", origin)


def _written_eager(draft: Draft) -> bool:
    setting = draft.settings.get("attention")
    return setting is not None and setting.option is not None and setting.key != "flash_attn"


def _implied(draft: Draft) -> None:
    """What the profile says that the framework's code sets, unless it is written."""
    for each in draft.profile.implies if draft.profile is not None and not draft.unread else ():
        absent = each.set not in draft.settings or (each.over_unset and draft.value(each.set) is None)
        excluded = bool(each.unless_stage) and draft.stage == each.unless_stage
        if absent and not excluded and _holds(draft, each):
            value = each.value
            if each.equals is not None or each.differs is not None:
                told = draft.value(each.when)
                value = told == each.equals if each.differs is None else told != each.differs
            draft.settings.pop(each.set, None)
            draft.put(each.set, value, each.source, each.when if each.when and not each.default else None)


def _holds(draft: Draft, each: Implication) -> bool:
    bounded = each.since or each.below
    if bounded and not draft.all_releases(each.since or None, each.below or None):
        return False
    if not each.when:
        return bool(bounded) or not draft.partial
    if each.equals is None and each.differs is None:
        return draft.value(each.when) is each.holds and (draft.written(each.when) or not each.written)
    if each.written:
        return draft.written(each.when)
    return draft.known(each.when) and (each.equals is None or draft.value(each.when) is not None)


def _configuration_file(draft: Draft) -> None:
    """A command that names a file of settings that is not at hand says nothing about what the file leaves out."""
    profile = draft.profile
    typed = (Origin.FLAG, Origin.HYDRA, Origin.ENV)
    if profile is not None and profile.needs_file and all(each.scope or each.origin in typed for each in draft.options):
        draft.drop(*draft.settings)


def _torchtune(draft: Draft) -> None:
    """The model's builder says how it is tuned."""
    if draft.framework != "torchtune":
        return
    builder = draft.value("model")
    if not isinstance(builder, str):
        return
    kind = builder.rpartition(".")[2].partition("_")[0]
    draft.put("use_peft", kind in ("lora", "qlora"), f"built by {builder}", "model")
    if kind not in ("lora", "qlora"):
        draft.drop("lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "dora", "load_in_4bit")
    if kind == "qlora":
        draft.put("load_in_4bit", True, f"built by {builder}", "model")


def _tuner(draft: Draft) -> None:
    """``use_peft`` and ``tuner`` from each other, from a LoRA rank, or from a PEFT configuration in the script."""
    if not draft.known("use_peft"):
        rank = draft.value("lora_rank")
        by_rank = draft.profile is not None and draft.profile.lora_by_rank
        if by_rank and draft.known("lora_rank") and isinstance(rank, int):
            draft.put("use_peft", rank > 0, "LoRA is on where its rank is above 0", "lora_rank")
        elif draft.known("tuner"):
            word = draft.value("tuner")
            none = word is None or str(word).lower() in _FULL
            draft.put("use_peft", not none, f"tuner {word if word is not None else 'unset'}", "tuner")
    peft = next((option for option in draft.options if option.scope in CALLS and option.key != "peft_config"), None)
    if peft is not None and draft.value("use_peft") is not True:
        draft.settings["use_peft"] = Setting(
            name="use_peft", value=True, option=peft, source="a PEFT configuration is made", key=peft.key
        )
    python = any(option.scope[:1].isupper() for option in draft.options)
    if not draft.known("use_peft") and draft.framework in SCRIPTED and python and not draft.partial:
        mentions = ("peft_config", "use_peft", "lora_r", "lora_alpha")
        if not any(option.key in mentions for option in draft.options):
            draft.put("use_peft", False, "the script makes no PEFT configuration")
    if not draft.known("tuner") and draft.known("use_peft"):
        draft.put("tuner", "lora" if draft.value("use_peft") is True else "full", "from use_peft", "use_peft")


def _quantisation(draft: Draft) -> None:
    bits = draft.value("quantization_bits")
    # ms-swift since 3.0 quantises nothing by ``quant_bits`` alone: the method has no default there.
    written = draft.settings.get("quantization_bits")
    methodless = written is not None and written.key == "quant_bits" and not draft.value("quantization_method")
    if bits in (4, 8) and not methodless and not draft.written(f"load_in_{bits}bit"):
        draft.put(f"load_in_{bits}bit", True, f"{bits}-bit base model", "quantization_bits")
    tuner = draft.value("tuner")
    if tuner == "qlora" and not draft.written("load_in_4bit"):
        draft.put("load_in_4bit", True, "adapter qlora", "tuner")
    if not draft.known("quantization_bits"):
        for width in (4, 8):
            if draft.value(f"load_in_{width}bit") is True:
                draft.put("quantization_bits", width, f"load_in_{width}bit", f"load_in_{width}bit")
                return
        if draft.value("load_in_4bit") is False and draft.value("load_in_8bit") in (False, None):
            draft.put("quantization_bits", None, "no quantisation", "load_in_4bit")


def _deepspeed(draft: Draft) -> None:
    """ZeRO stage, offload and the fp16 engine from a preset's name, an attached file, or the lack of both."""
    word = draft.value("deepspeed")
    if isinstance(word, str):
        name = word.rsplit("/", 1)[-1]
        match = _PRESET.search(name)
        if match and "zero_stage" not in draft.settings:
            draft.put("zero_stage", int(match[1]), f"from the name {name}", "deepspeed")
        if match and "offload" in name.lower() and "optimizer_offload" not in draft.settings:
            draft.put("optimizer_offload", True, f"from the name {name}", "deepspeed")
            if match[1] == "3":
                draft.put("param_offload", True, f"from the name {name}", "deepspeed")
    file_options = {
        option.key: option
        for option in draft.options
        if option.scope == "deepspeed" or option.key.startswith(("deepspeed.", "deepspeed_config."))
    }
    for engine in ("fp16", "bf16"):
        name = f"deepspeed_{engine}"
        option = next((o for key, o in file_options.items() if key.endswith(f"{engine}.enabled")), None)
        if option is not None and option.value == "auto":
            draft.settings.pop(name, None)
            if draft.known(engine) and draft.value(engine) is not None:
                draft.put(name, draft.value(engine) is True, f"auto follows {engine}", engine)
        elif name not in draft.settings and file_options and not draft.partial:
            draft.put(name, False, f"the DeepSpeed configuration has no {engine} section")
        elif name not in draft.settings and draft.known("deepspeed") and word is None and not _launched(draft):
            draft.put(name, False, "no DeepSpeed")
        elif name not in draft.settings and _known_preset(draft, word) and isinstance(draft.value(engine), bool):
            draft.put(name, draft.value(engine) is True, f"the preset's auto follows {engine}", engine)


def _launched(draft: Draft) -> bool:
    """Whether accelerate may use a DeepSpeed configuration of its own."""
    return any(
        (option.scope == "accelerate" and ("deepspeed" in option.key or "DEEPSPEED" in str(option.value)))
        or (
            option.scope == "launcher" and option.key in ("use_deepspeed", "deepspeed_config_file", "accelerate_config")
        )
        for option in draft.options
    )


def _known_preset(draft: Draft, word: Value) -> bool:
    """Whether it is a preset whose precision is ``auto``."""
    pattern = draft.profile.auto_presets if draft.profile is not None and not draft.unread else ""
    return bool(pattern) and isinstance(word, str) and re.fullmatch(pattern, word) is not None


def _precision(draft: Draft) -> None:
    """What accelerate's mixed precision turns on."""
    mixed = draft.value("mixed_precision")
    on_hf = draft.framework in (*INHERITS, BASE) and not draft.written("bf16") and not draft.written("fp16")
    if on_hf and mixed in ("bf16", "fp16"):
        draft.put(str(mixed), True, "accelerate's mixed precision", "mixed_precision")


def _optimizer(draft: Draft) -> None:
    """HF's default optimizer: ``adamw_torch``; the fused one with torch 2.8 or newer on recent transformers.

    Read in transformers 4.46.3 (no), 4.57.1 and 5.5.3 (yes); in between it is left open.
    """
    if draft.framework not in (*INHERITS, BASE) or "optimizer" in draft.settings or draft.partial:
        return
    hf, torch = draft.versions.get(BASE), draft.versions.get("torch")
    if draft.unread or (hf and hf.exact and not around(BASE, hf.exact)):
        return
    release = version_key(hf.exact) if hf and hf.exact else None
    if release is not None and release <= version_key("4.46.3"):
        draft.put("optimizer", "adamw_torch", "default of transformers before 4.57 optim")
    elif torch and torch.exact and version_key(torch.exact) < version_key("2.8"):
        draft.put("optimizer", "adamw_torch", "default of transformers with torch before 2.8 optim")
    elif torch and torch.exact and release is not None and release >= version_key("4.57.1"):
        draft.put("optimizer", "adamw_torch_fused", "default of transformers with torch 2.8 or newer optim")


def _llamafactory_attention(draft: Draft) -> None:
    """``flash_attn: auto`` becomes fa2 for Gemma-2 if flash-attn is installed (since 0.8.3)."""
    setting = draft.settings.get("attention")
    if draft.framework != "llamafactory" or draft.unread or setting is None or setting.value != "auto":
        return
    if draft.model_family == "gemma2":
        if "flash-attn" in draft.versions:
            source = "flash_attn auto takes fa2 for Gemma-2 where flash-attn is installed"
            draft.settings["attention"] = Setting(
                name="attention", value="flash2", option=setting.option, source=source, key=setting.key
            )
        elif setting.option is None:
            del draft.settings["attention"]


_STEPS: tuple[Callable[[Draft], None], ...] = (
    _launch_config,
    _openrlhf,
    _configuration_file,
    _torchtune,
    _tuner,
    _quantisation,
    _implied,
    _precision,
    _deepspeed,
    _optimizer,
    _llamafactory_attention,
)
