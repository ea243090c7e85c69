"""A webhook worker that answers with the number of its process.

```python
WorkerPool(1, WORKER, metrics)
```
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from pergola.admission.certificates import Certificates
from pergola.admission.server import serve
from pergola.admission.serving import Listening
from pergola.admission.workers.worker import run
from pergola.api.objects import JsonObject
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.options import StartError

WORKER: Final = "tests.support.webhook_worker"
"""The main module of the worker."""
PATH: Final = "/pid"


class Pid:
    """An endpoint that counts its requests and answers with the process's number."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics.webhook(PATH)

    def __call__(self, content_type: str, body: bytes, peer: str = "") -> bytes:
        """Answer."""
        self._metrics.observe(200, 0.0)
        return str(os.getpid()).encode()

    def too_large(self, limit: str) -> bytes:
        """Answer."""
        return limit.encode()


def task_at(at: Listening, problem: str = "") -> JsonObject:
    """Return the task to serve.

    Args:
        problem: why the worker refuses to.
    """
    return {"port": at.port, "directory": str(at.directory), "problem": problem}


@asynccontextmanager
async def serve_pid(task: JsonObject, metrics: Metrics) -> AsyncGenerator[None]:
    """Serve until the end of the block."""
    if task["problem"]:
        raise StartError(task["problem"])
    certificates = Certificates(Path(task["directory"]), metrics.certificates())
    endpoints = {PATH: Pid(metrics)}
    async with serve("localhost", task["port"], endpoints, certificates, shared=True):
        yield


if __name__ == "__main__":
    run(serve_pid)
