"""An adapter that is exported or served with another template than that of its training run in the same paste."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import RunConfig


def check(facts: Facts) -> Outcome:
    """Fires where a pasted training run wrote this run's adapter with another template."""
    used = _text(facts.run, "chat_template")
    adapter = _text(facts.run, "adapter")
    if used is None or adapter is None or facts.option("do_train").value is True:
        return CLEAR
    for other in facts.evidence.runs:
        trained, folder = _text(other, "chat_template"), _text(other, "output_dir")
        if other.id == facts.run.id or trained is None or folder is None or not _trains(other):
            continue
        if _same_folder(folder[0], adapter[0]) and trained[0] != used[0]:
            return fires(trained[1], folder[1], used[1], adapter[1], trained=trained[0], used=used[0])
    return CLEAR


def _text(run: RunConfig, name: str) -> tuple[str, Span] | None:
    """A written setting that is plain text, with its place."""
    setting = run.settings.get(name)
    if setting is None or setting.option is None or not isinstance(setting.value, str) or "$" in setting.value:
        return None
    return setting.value.strip(), setting.option.span


def _trains(run: RunConfig) -> bool:
    return any(option.key == "do_train" and option.value is True for option in run.options)


def _same_folder(folder: str, adapter: str) -> bool:
    """Whether the adapter is the training's output folder, or a checkpoint below it."""
    folder, adapter = (text.rstrip("/").removeprefix("./") for text in (folder, adapter))
    return adapter == folder or adapter.startswith(f"{folder}/checkpoint-")
