"""Commands that a release runs."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_UV: Final = Path(sys.executable).with_name("uv")


def uv(*arguments: str, epoch: int = 0) -> str:
    """Run uv in the checkout, and return its output.

    Args:
        epoch: the time of what it writes, in seconds since 1970.

    Raises:
        SystemExit: it failed.
    """
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    answer = subprocess.run(
        [_UV, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise SystemExit(f"error: uv {arguments[0]} failed: {answer.stderr.strip()}")
    return answer.stdout
