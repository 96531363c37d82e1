"""``doctor.pyz``, run by a Python that has nothing installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.incidents import KTO_SINGLE
from trainmedic.ui.doctor.single_file import make

MOST_MB = 12


@pytest.mark.slow
def test_one_file_finds_the_cause_where_nothing_is_installed(tmp_path: Path) -> None:
    archive, run = tmp_path / "doctor.pyz", tmp_path / "run"
    make(archive)
    assert archive.stat().st_size < MOST_MB * 1024 * 1024
    run.mkdir()
    (run / "train.sh").write_text(KTO_SINGLE, encoding="utf-8")
    (run / "broken.py").write_text("from trl import SFTConfig\nSFTConfig(fp16=True\n", encoding="utf-8")
    python = Path(sys.base_prefix) / "bin" / "python3"
    for home in (tmp_path, Path("/proc")):  # the second cannot be written to
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        command = [str(python), "-I", "-S", str(archive), str(run), "--bundle", str(tmp_path / "out.zip")]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 1, ended.stderr
        assert "openrlhf-kto-vanilla-loss-single-class" in ended.stdout
        assert (tmp_path / "out.zip").is_file()
    (cache,) = (tmp_path / ".cache").iterdir()
    assert cache.name.startswith("trainmedic-doctor-")
