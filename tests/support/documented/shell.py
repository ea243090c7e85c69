"""A shell for single commands of a page, for tests that look at a cluster in between."""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from pergola.sandbox import binaries
from pergola.sandbox.on_demand import KUBECTL

_PROGRAMS: Final = Path(sys.executable).parent


def kubectl() -> Path:
    """Return the kubectl of this machine, or the sandbox's if it has none."""
    found = shutil.which("kubectl")
    return Path(found) if found else binaries.find((KUBECTL,))[KUBECTL]


class Shell:
    """Runs commands in a folder, for a cluster.

    Attributes:
        folder: The working directory.
    """

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.folder = folder
        paths = (_PROGRAMS, os.environ.get("PATH", ""), kubectl().parent)
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PATH": os.pathsep.join(map(str, paths)),
        }

    async def run(self, *lines: str) -> str:
        """Run commands one after another, and return their output; fail if one of them fails."""
        return "".join([await self._run(line) for line in lines])

    async def _run(self, line: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-ec", line),
            cwd=self.folder,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode == 0, f"{line}: {process.returncode}: {(out + err).decode()}"
        return out.decode()
