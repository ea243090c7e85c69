"""A program of its own ends with a sentence, or with a traceback."""

import subprocess
import sys

import pytest


def ended(raising: str) -> subprocess.CompletedProcess[str]:
    """Return how a program ended whose work raises an error at once."""
    program = (
        "from pergola.kube.errors import ConfigurationError\n"
        "from pergola.runtime import run\n"
        f"async def main():\n    raise {raising}\n"
        "run(main)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "raising",
    [
        'ConfigurationError("no cluster is configured")',
        'ExceptionGroup("several", [ConfigurationError("no cluster is configured")])',
    ],
)
def test_an_error_for_its_user_is_one_line(raising: str) -> None:
    program = ended(raising)
    assert program.returncode == 1
    assert program.stderr == "-c: no cluster is configured\n"


@pytest.mark.parametrize("raising", ['KeyError("name")', 'FileNotFoundError("of its own")'])
def test_any_other_error_has_a_traceback(raising: str) -> None:
    program = ended(raising)
    assert program.returncode == 1
    assert "Traceback" in program.stderr
