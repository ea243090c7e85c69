"""The Containerfile of the tutorial, whose steps need no container engine."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from pergola import __version__
from tools.release.image import COMMAND

FOLDER: Final = Path(__file__).parents[3] / "examples" / "own-kind"
LINE: Final = re.compile(r"(?P<word>ARG|FROM|COPY|ENTRYPOINT) (?P<rest>.+)")


def steps() -> dict[str, str]:
    """Return the instructions; there is one of each sort, and none that runs a command."""
    lines = (FOLDER / "Containerfile").read_text().splitlines()
    found = [LINE.fullmatch(line) for line in lines if not line.startswith("#")]
    return {match["word"]: match["rest"] for match in found if match} | {"": str(found.count(None))}


def test_it_adds_the_program_to_the_image_of_this_version() -> None:
    assert steps() == {
        "ARG": f"PERGOLA=registry.example/pergola:{__version__}",
        "FROM": "${PERGOLA}",
        "COPY": "greeting.py /app/",
        "ENTRYPOINT": '["/usr/bin/python3.11", "/app/greeting.py"]',
        "": "0",
    }


def test_the_image_has_the_interpreter_that_it_names() -> None:
    interpreter, _ = json.loads(steps()["ENTRYPOINT"])
    assert COMMAND.startswith(f"#!{interpreter}\n".encode())


def test_the_program_starts_from_its_file_alone(tmp_path: Path) -> None:
    source, _ = steps()["COPY"].split()
    (tmp_path / source).write_bytes((FOLDER / source).read_bytes())
    answer = subprocess.run(
        [sys.executable, tmp_path / source],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no cluster is configured" in answer.stderr
