"""Detection of a running process by its watches, which the API server counts."""

import asyncio
import re
import time
from typing import Final, Protocol

from pergola.kube.client import Client

_STEP: Final = 0.5
_PATIENCE: Final = 300.0


class Running(Protocol):
    """A process that may end."""

    def check(self) -> None:
        """Fail if the process ended."""
        ...


async def watches(client: Client, resource: str) -> int:
    """Return the number of open watches of a resource."""
    text = (await client.get_raw("/metrics")).decode()
    total = 0
    for line in re.findall(r"^apiserver_longrunning_requests\{.*$", text, flags=re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if (labels.get("resource"), labels.get("verb")) == (resource, "WATCH"):
            total += int(float(line.rsplit(" ", 1)[1]))
    return total


async def another_watch(client: Client, resource: str, before: int, process: Running) -> None:
    """Wait until more watches of a resource are open than before the process was started."""
    deadline = time.monotonic() + _PATIENCE
    while await watches(client, resource) <= before:
        process.check()
        if time.monotonic() > deadline:
            raise SystemExit(f"the process did not watch {resource}")
        await asyncio.sleep(_STEP)
