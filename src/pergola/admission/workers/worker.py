"""The worker's side: its standard input is the socket to the parent process."""

import os
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

from pergola.admission.workers.messages import FAILED, METRICS, SERVING, Channel, open_channel
from pergola.api.objects import JsonObject
from pergola.runtime.logging import describe, get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process import event_loop
from pergola.runtime.summed_metrics import snapshot

log = get_logger("webhook-worker")

Serve = Callable[[JsonObject, Metrics], AbstractAsyncContextManager[None]]
"""Serves the task given to a worker."""


def run(serve: Serve) -> None:
    """Serve until the other process closes the channel.

    The parent process handles signals to the process group.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    event_loop.run(lambda: _work(serve))


async def _work(serve: Serve) -> None:
    channel = await open_channel(socket.socket(fileno=os.dup(0)))
    task = await channel.receive()
    if task is None:
        return
    metrics = Metrics()
    try:
        async with serve(task, metrics):
            await channel.send(**{SERVING: True})
            await _answer(channel, metrics)
    except Exception as error:
        log.error("webhook worker failed", exc_info=error)
        with suppress(OSError):
            await channel.send(**{FAILED: describe(error)})
        raise SystemExit(1) from None


async def _answer(channel: Channel, metrics: Metrics) -> None:
    while (question := await channel.receive()) is not None:
        answer = {METRICS: [tuple(family) for family in snapshot(metrics.registry)]}
        await channel.send(asked=question["ask"], **answer)
