"""A misspelt environment variable: no one reads it, and no one complains."""

from __future__ import annotations

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.model.run import Option, Origin
from trainmedic.kb.suggest import closest

_KNOWN = frozenset((
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE",
    "NCCL_SHM_DISABLE", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA",
    "NCCL_IB_GID_INDEX", "NCCL_IB_TIMEOUT", "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_PXN_DISABLE", "NCCL_NVB_DISABLE",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_DISTRIBUTED_DEBUG", "TORCHDYNAMO_DISABLE", "GLOO_SOCKET_IFNAME", "TOKENIZERS_PARALLELISM",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_DATASETS_OFFLINE",
    "HF_DATASETS_CACHE", "HF_HUB_ENABLE_HF_TRANSFER", "TRANSFORMERS_OFFLINE", "TRANSFORMERS_CACHE",
    "TRANSFORMERS_VERBOSITY", "WANDB_PROJECT", "WANDB_API_KEY", "WANDB_MODE", "WANDB_DISABLED", "WANDB_ENTITY",
    "WANDB_RUN_ID", "WANDB_BASE_URL", "WANDB_RUN_GROUP", "WANDB_LOG_MODEL", "VLLM_USE_V1", "VLLM_ATTENTION_BACKEND",
    "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_LOGGING_LEVEL", "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
    "RAY_DEDUP_LOGS", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NPROC_PER_NODE",
    "FORCE_TORCHRUN", "DISABLE_VERSION_CHECK", "ALLOW_EXTRA_ARGS", "USE_MODELSCOPE_HUB", "MODELSCOPE_CACHE",
    "MAX_PIXELS", "MIN_PIXELS", "VIDEO_MAX_PIXELS", "VIDEO_MIN_PIXELS", "FPS_MAX_FRAMES", "FPS_MIN_FRAMES",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH",
    "PYTHONUNBUFFERED", "HYDRA_FULL_ERROR",
))  # fmt: skip
_CONFUSED = {"MASTER_ADDRESS": "MASTER_ADDR", "CUDA_VISIBLE_GPUS": "CUDA_VISIBLE_DEVICES"}
_SHORTEST, _LONG = 8, 14
_VENDORS = frozenset((
    "DCU", "GCU", "HPU", "MACA", "MCCL", "MLU", "MTT", "MUSA", "ROCM", "TPU", "XPU",
))  # fmt: skip
"""Accelerators whose libraries read variables named after those of CUDA."""


def check(facts: Facts) -> Outcome:
    """Fires on a name within one or two letters of a well-known one, unless the paste itself reads it."""
    offences = []
    for option in facts.run.options:
        if option.scope != "env" or option.origin is not Origin.ENV or option.key in _KNOWN:
            continue
        meant = _CONFUSED.get(option.key) or _nearest(option.key)
        if meant is not None and not _read(option, facts):
            offences.append(Offence(option, f"did you mean {meant}?", f"是不是 {meant}？"))
    return report(offences, facts)


def _nearest(name: str) -> str | None:
    if len(name) < _SHORTEST or name.upper() != name or not _VENDORS.isdisjoint(name.split("_")):
        return None
    limit = 2 if len(name) >= _LONG else 1
    return closest(name, sorted(known for known in _KNOWN if known[:2] == name[:2]), limit=limit)


def _read(option: Option, facts: Facts) -> bool:
    """Whether something in the paste uses the variable: then it is one of the user's own."""
    marks = (f"${option.key}", f"${{{option.key}", f'"{option.key}"', f"'{option.key}'")
    return any(mark in source.text for source in facts.evidence.sources for mark in marks)
