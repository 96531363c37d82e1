"""The archive of `make bundle` installs trainmedic where there is no network."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deployment.conftest import PYTHON, run

pytestmark = pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def bundle(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive."""
    dist, target = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("target")
    run(PYTHON, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, checkout, checkout / "kb" / "data")
    run(checkout / "docs/deploy/airgap/make_bundle.sh", PYTHON, dist)
    (archive,) = dist.glob("trainmedic-*.tar.gz")
    run("sha256sum", "--check", f"{archive.name}.sha256", cwd=dist)
    run("tar", "-xzf", archive, "-C", target)
    (folder,) = target.iterdir()
    return folder


def test_a_bundle_installs_and_answers_without_network(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "opt"
    python = next(path for path in (PYTHON.resolve(), PYTHON) if path.exists())
    # What the caller's environment has of another installation is not taken for this one.
    other = tmp_path / "other" / "trainmedic-0.1.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: trainmedic\nVersion: 0.1.0\n", encoding="utf-8")
    caller = ("env", f"PYTHONPATH={other.parent}", f"PIP_TARGET={tmp_path}/elsewhere")
    run(*caller, "sh", bundle / "install.sh", target, python, without_network=True)
    assert not (tmp_path / "elsewhere").exists()
    environment = ("env", "-i", "PATH=/usr/bin:/bin", f"HOME={tmp_path}")
    (tmp_path / "ds.json").write_text('{"bf16": {"enabled": true}, "fp16": {"enabled": true}}', encoding="utf-8")
    program = target / "bin" / "trainmedic"
    checked = run(*environment, program, "check", "--exit-zero", tmp_path / "ds.json", without_network=True)
    assert "deepspeed-fp16-and-bf16-together" in checked
    answer = run(*environment, program, "ask", "loss is nan", "-f", tmp_path / "ds.json", without_network=True)
    assert "deepspeed" in answer.lower()
    assert (bundle / "deploy" / "helm" / "trainmedic" / "Chart.yaml").exists()


def test_a_damaged_bundle_and_one_of_another_platform_are_refused(bundle: Path, tmp_path: Path) -> None:
    def installed() -> subprocess.CompletedProcess[str]:
        command = ["sh", str(bundle / "install.sh"), str(tmp_path / "opt"), str(PYTHON)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for name, complaint in (("constraints.txt", "damaged"), ("platform", "this bundle is for")):
        path, sums = bundle / name, bundle / "SHA256SUMS"
        before = path.read_text(encoding="utf-8"), sums.read_text(encoding="utf-8")
        path.write_text("sunos-sparc-cp27\n", encoding="utf-8")
        if name == "platform":
            digest = run("sha256sum", "./platform", cwd=bundle)
            lines = [line for line in before[1].splitlines() if not line.endswith("./platform")]
            sums.write_text("\n".join([*lines, digest]), encoding="utf-8")
        done = installed()
        path.write_text(before[0], encoding="utf-8")
        sums.write_text(before[1], encoding="utf-8")
        assert done.returncode == 1
        assert complaint in done.stderr
    assert not (tmp_path / "opt").exists()
