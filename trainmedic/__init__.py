"""Find the cause of a broken LLM training run, and the smallest change that fixes it.

The names in ``__all__`` are the public Python API, described in docs/connect/python.md. Importing this package loads
nothing else: each name is imported from its module on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers read it, without importing typing
if TYPE_CHECKING:
    from typing import Any

    from trainmedic.kb.errors import TrainmedicError
    from trainmedic.kb.model.place import Attachment
    from trainmedic.kb.model.report_view import FindingView as Finding
    from trainmedic.kb.model.report_view import ReportView as Report
    from trainmedic.service.answer.schema import Answer
    from trainmedic.service.answer.schema import AuditView as Audit
    from trainmedic.service.answer.schema import CauseView as Cause
    from trainmedic.service.answer.schema import DefectView as Defect
    from trainmedic.service.answer.schema import DiffView as Diff
    from trainmedic.ui.auditing import audit
    from trainmedic.ui.checking import check
    from trainmedic.ui.client import Client, ServiceError, read_files
    from trainmedic.ui.diffing import diff
    from trainmedic.ui.watch.callback import TrainmedicCallback

    __version__: str

__all__ = [
    "Answer",
    "Attachment",
    "Audit",
    "Cause",
    "Client",
    "Defect",
    "Diff",
    "Finding",
    "Report",
    "ServiceError",
    "TrainmedicCallback",
    "TrainmedicError",
    "__version__",
    "audit",
    "check",
    "diff",
    "read_files",
]
_HOMES = {
    "Answer": ("service.answer.schema", "Answer"),
    "Attachment": ("kb.model.place", "Attachment"),
    "Audit": ("service.answer.schema", "AuditView"),
    "Cause": ("service.answer.schema", "CauseView"),
    "Client": ("ui.client", "Client"),
    "Defect": ("service.answer.schema", "DefectView"),
    "Diff": ("service.answer.schema", "DiffView"),
    "Finding": ("kb.model.report_view", "FindingView"),
    "Report": ("kb.model.report_view", "ReportView"),
    "ServiceError": ("ui.client", "ServiceError"),
    "TrainmedicCallback": ("ui.watch.callback", "TrainmedicCallback"),
    "TrainmedicError": ("kb.errors", "TrainmedicError"),
    "audit": ("ui.auditing", "audit"),
    "check": ("ui.checking", "check"),
    "diff": ("ui.diffing", "diff"),
    "read_files": ("ui.client", "read_files"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("trainmedic")
    elif name in _HOMES:
        from importlib import import_module

        module, attribute = _HOMES[name]
        value = getattr(import_module(f"trainmedic.{module}"), attribute)
    else:
        raise AttributeError(f"module 'trainmedic' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
