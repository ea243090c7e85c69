"""A webhook worker of the resource manager: the same webhooks and caches in another process.

`pergola resource-manager` starts it if `server.webhooks.workers` is more than 1. It runs no
controllers, takes no part in leader election, and serves its parent's certificate.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from pergola.admission.serving import Listening
from pergola.admission.workers.worker import run
from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config import configuration_from
from pergola.resource_manager.connections import connect
from pergola.resource_manager.serving import WebhookServing
from pergola.runtime.logging import configure
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup


@asynccontextmanager
async def serve(task: JsonObject, metrics: Metrics) -> AsyncGenerator[None]:
    """Serve the webhooks of a configuration."""
    config, _ = configuration_from(task["configuration"], source="the configuration")
    configure(config.log_level, config.log_format)
    version = task["version"]
    async with AsyncExitStack() as stack:
        clusters = await connect(config, tuple(task["targetNamespaces"]), stack, metrics)
        webhooks = WebhookServing(
            config,
            clusters,
            metrics,
            (version[0], version[1]) if version else None,
            hvpa=task["hvpa"],
            at=listening_of(task),
        )
        await stack.enter_async_context(webhooks.served())
        group = await stack.enter_async_context(TaskGroup())
        running = [group.create_task(unit.run()) for unit in webhooks.units]
        try:
            yield
        finally:
            for each in running:
                each.cancel()


def listening_of(task: JsonObject) -> Listening:
    """Return where a worker serves."""
    client_ca = task["clientCA"]
    return Listening(
        host=task["host"],
        port=task["port"],
        directory=Path(task["directory"]),
        client_ca=Path(client_ca) if client_ca else None,
        shared=True,
    )


if __name__ == "__main__":
    run(serve)
