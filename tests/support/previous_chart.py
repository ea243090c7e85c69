"""A chart as it was before its last change, from which Helm has to upgrade."""

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
_MOST: Final = 50


def previous_chart(name: str, folder: Path) -> Path:
    """Write the latest committed version of a chart that differs from the current one.

    The test is skipped outside a checkout with its history.

    Args:
        folder: where to.
    """
    place = f"charts/{name}"
    log = _git("log", f"--max-count={_MOST}", "--format=%H", "--", place)
    for commit in log.stdout.decode().split() if log.returncode == 0 else ():
        if _git("diff", "--quiet", commit, "--", place).returncode == 1:
            archive = _git("archive", commit, place)
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
                tar.extractall(folder, filter="data")
            return folder / place
    pytest.skip(f"git has no earlier version of {place}")


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
