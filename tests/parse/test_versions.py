"""Versions as listings, requirement files and environment reports print them."""

from __future__ import annotations

from packaging.version import Version

from tests.every_case import every_case
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.parse.readers import versions
from trainmedic.kb.parse.source import Piece


def read(text: str) -> dict[str, VersionFact]:
    return {fact.package: fact for fact in versions.read(Piece(source=None, text=text))}


def exact(text: str) -> dict[str, str | None]:
    return {package: fact.exact for package, fact in read(text).items()}


def test_pip_list_is_read_with_its_header() -> None:
    text = """Package           Version         Editable project location
----------------- --------------- -----------------
accelerate        0.32.0
flash_attn        2.6.1
somebody-else     7
torch             2.5.1+cu124
ms_swift          3.1.0           /opt/ms-swift
"""
    assert exact(text) == {
        "accelerate": "0.32.0", "flash-attn": "2.6.1", "somebody-else": "7", "torch": "2.5.1", "cuda": "12.4",
        "ms-swift": "3.1.0",
    }  # fmt: skip
    span = read(text)["flash-attn"].span
    assert span is not None
    assert (span.line, span.column, span.text) == (4, 1, "flash_attn        2.6.1")


def test_a_listing_without_header_is_read_for_packages_we_know() -> None:
    assert exact("transformers   4.46.3\nmystery        1.2.3\nbitsandbytes 0.44.1 pypi_0 pypi") == {
        "transformers": "4.46.3",
        "bitsandbytes": "0.44.1",
    }


def test_a_listing_ends_at_an_empty_line() -> None:
    assert exact("Package  Version\n-------  -------\nabc 1.0\n\nabd 2.0") == {"abc": "1.0"}


def test_pip_freeze_and_install_commands_are_read() -> None:
    text = "peft==0.13.2\n[pip3] triton==3.1.0\npip install trl==0.12.0 'deepspeed[x]==0.15.4'\n"
    assert exact(text) == {"peft": "0.13.2", "triton": "3.1.0", "trl": "0.12.0", "deepspeed": "0.15.4"}


@every_case("line", ["if step == 10:", "wandb==0.*", "assert x==1", "a===b"])
def test_comparisons_in_code_are_no_pins(line: str) -> None:
    assert read(line) == {}


def test_an_install_from_a_repository_states_a_version_only_in_its_tag_or_file_name() -> None:
    text = (
        "vllm @ git+https://github.com/vllm-project/vllm@v0.6.3\n"
        "trl @ git+https://github.com/huggingface/trl@0123abc45\n"
        "peft @ file:///tmp/peft-0.13.2-py3-none-any.whl\n"
        "-e git+https://github.com/hiyouga/LLaMA-Factory.git@abc#egg=llamafactory\n"
        "-e git+https://github.com/x/y.git\n"
        "see #egg=nothing"
    )
    assert exact(text) == {"vllm": "0.6.3", "trl": None, "peft": "0.13.2", "llamafactory": None}
    assert "0123abc45" in read(text)["trl"].reason


@every_case(
    ("requirement", "low", "high"),
    [
        ("transformers>=4.41.2,<=4.46.1,!=4.46.0", "4.41.2", "4.46.1"), ("transformers<4.45", None, "4.45.dev0"),
        ("transformers>4.40", "4.40.post0", None), ("transformers~=4.43.1", "4.43.1", "4.44.dev0"),
        ("datasets[audio] >= 2.16 ; python_version > '3.8'", "2.16", None), ("torch>=2,==2.5.*", "2.5", "2.6.dev0"),
        ("torch>=2,==2.5.1", "2.5.1", "2.5.1"), ("torch~=2", "2", None),
    ],
)  # fmt: skip
def test_requirements_are_ranges_with_inclusive_ends(requirement: str, low: str | None, high: str | None) -> None:
    (fact,) = read(requirement).values()
    assert (fact.exact, fact.low, fact.high) == (None, low, high)
    assert low is None or Version(low)
    assert high is None or Version(high)


@every_case("line", ["loss>1.5", "transformers!=4.46.0", "echo x 2>1"])
def test_other_comparisons_are_no_requirement(line: str) -> None:
    assert read(line) == {}


def test_an_installed_version_wins_over_a_requirement_and_the_first_over_later_ones() -> None:
    assert exact("transformers>=4.41\ntransformers==4.46.3\ntransformers==4.40.0") == {"transformers": "4.46.3"}


@every_case(
    "line",
    [
        "please upgrade to transformers==4.45.0",
        "fixed in trl==0.12.0",
        "建议升级到 transformers==4.45.0",
        "requires transformers<=4.46.1",
    ],
)
def test_a_version_somebody_should_use_is_not_the_one_in_use(line: str) -> None:
    assert read(line) == {}


def test_a_version_moved_to_in_the_past_is_in_use() -> None:
    assert exact("I upgraded to trl==0.12.0") == {"trl": "0.12.0"}


def test_pip_reports_what_is_installed_when_it_conflicts() -> None:
    text = "llamafactory 0.9.1 requires transformers<=4.46.1, but you have transformers 4.47.0 which is incompatible."
    assert exact(text)["transformers"] == "4.47.0"


def test_environment_reports_of_the_frameworks_are_read() -> None:
    text = """- `transformers` version: 4.46.3
- Platform: Linux-6.8.0-59-generic-x86_64-with-glibc2.35
- Python version: 3.10.0
- Huggingface_hub version: 0.26.2
- PyTorch version (GPU?): 2.3.0+cu121 (True)
- Flax version (CPU?/GPU?/TPU?): not installed (NA)
- `llamafactory` version: 0.9.3.dev0
- PEFT version: 0.15.1
- GPU type: NVIDIA A100-SXM4-80GB
- GPU memory: 79.25GB
vLLM Version: 0.6.3
"""
    assert exact(text) == {
        "transformers": "4.46.3", "python": "3.10.0", "huggingface-hub": "0.26.2", "torch": "2.3.0", "cuda": "12.1",
        "llamafactory": "0.9.3.dev0", "peft": "0.15.1", "gpu": "NVIDIA A100-SXM4-80GB", "gpu-memory": "79.25GB",
        "vllm": "0.6.3",
    }  # fmt: skip


def test_ds_report_collect_env_and_swift_are_read() -> None:
    text = """torch version .................... 2.5.1+cu124
torch cuda version ............... 12.4
nvcc version ..................... 12.1
deepspeed info ................... 0.15.4, unknown, unknown
swift.__version__: 3.2.0
Nvidia driver version: 535.54.03
CUDA runtime version: 12.4.131
"""
    assert exact(text) == {
        "torch": "2.5.1",
        "cuda": "12.4",
        "deepspeed": "0.15.4",
        "ms-swift": "3.2.0",
        "nvidia-driver": "535.54.03",
    }


def test_nvidia_smi_and_nvcc_are_read() -> None:
    text = """| NVIDIA-SMI 535.54.03              Driver Version: 535.54.03    CUDA Version: 12.2     |
|   0  Tesla V100-SXM2-32GB        On  | 00000000:0 Off |
| N/A   31C    P0    60W / 400W |      0MiB / 32768MiB |
Cuda compilation tools, release 12.4, V12.4.131
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)
"""
    assert exact(text) == {
        "nvidia-driver": "535.54.03", "cuda-driver": "12.2", "gpu": "Tesla V100-SXM2-32GB",
        "gpu-memory": "32768MiB", "cuda": "12.4",
    }  # fmt: skip


def test_the_version_that_saved_a_model_is_not_taken() -> None:
    assert read('"transformers_version": "4.46.3",') == {}


@every_case(
    ("written", "name"),
    [("flash_attn", "flash-attn"), ("Flash.Attention", "flash-attn"), ("LLaMA-Factory", "llamafactory"),
    ("llmtuner", "llamafactory"),
     ("swift", "ms-swift"), ("`PyTorch`", "torch"), ("huggingface_hub", "huggingface-hub")],
)  # fmt: skip
def test_names_are_normalised(written: str, name: str) -> None:
    assert versions.package(written) == name


@every_case(("version", "bound"), [("4.43", "4.44.dev0"), ("4", "5.dev0"), ("1.x", "1.x.dev0")])
def test_the_bound_of_a_release_series_is_just_below_the_next(version: str, bound: str) -> None:
    assert versions.next_release(version) == bound


def test_the_number_of_facts_is_bounded() -> None:
    assert (
        len(versions.read(Piece(source=None, text="".join(f"p{i}==1.0\n" for i in range(5000))))) == versions.MAX_FACTS
    )


def test_a_name_with_dashes_before_its_version_is_a_listing_for_packages_we_know() -> None:
    assert exact("torch-2.1.2\npython3.8\nmystery-1.2.3\n/usr/local/cuda-12.1/lib\ntorch-2.1.2-cp310.whl") == {
        "torch": "2.1.2",
        "python": "3.8",
    }
