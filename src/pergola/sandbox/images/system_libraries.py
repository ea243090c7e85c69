"""Shared libraries of this machine, for programs that are not static."""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pergola.sandbox.images.layers import Entry


def system_libraries(programs: Iterable[Path]) -> Iterator[Entry]:
    """Yield the machine's shared libraries that programs and libraries load, and the loader."""
    line = ["ldd", *map(str, programs)]
    answer = subprocess.run(line, check=False, capture_output=True, text=True)
    for path in sorted(set(re.findall(r"(/\S+\.so[\w.]*) \(0x", answer.stdout))):
        if not path.startswith(sys.base_prefix):
            yield Entry(path.lstrip("/"), Path(path).resolve(), 0o755)
