"""The process: `python -m pergola.sandbox.collectors`, with the arguments of the original."""

from pergola.kube.client import Client
from pergola.kube.kubeconfig import in_cluster
from pergola.runtime.logging import configure
from pergola.runtime.process.event_loop import run
from pergola.runtime.process.signals import work_until_signalled
from pergola.sandbox.collectors.controller import collectors_unit


async def serve() -> None:
    """Run collectors until cancelled."""
    async with Client.connect(in_cluster()) as client:
        await collectors_unit(client).run()


async def _main() -> None:
    configure("info", "json")
    await work_until_signalled(serve())


if __name__ == "__main__":
    run(_main)
