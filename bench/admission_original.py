"""The webhook server of Gardener's resource manager, for `bench/admission.py`.

Its node has the taints that Pergola's server is given, so that both answer with the same patch.
"""

import asyncio
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.error import URLError

from bench.admission_servers import POD_NODE_SELECTOR, POD_TOLERATIONS, TAINTS
from bench.peer import UNLIMITED
from bench.processes import Process, Program, resource_manager
from bench.writes import opened
from pergola.kube.client import Client
from pergola.resource_manager.webhooks import system_components_config
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import GARDENER_RESOURCE_MANAGER
from pergola.testing.crds import install_crds
from tests.support.ports import held_port

PATH: Final = system_components_config.PATH
"""The webhook that it serves."""
_START_SECONDS: Final = 60.0


@contextmanager
def original(prefix: Sequence[str], folder: Path) -> Iterator[tuple[list[Process], int]]:
    """Run the original beside a control plane; yield its process and port when it is ready.

    Args:
        prefix: of its command, such as `taskset`.
        folder: has the certificate.
    """
    name = GARDENER_RESOURCE_MANAGER
    program = binaries.find((name,), lambda line: print(line, flush=True))[name]
    with asyncio.Runner() as runner, ExitStack() as stack:
        cluster = opened("bench-admission")
        started, client = runner.run(cluster.__aenter__())
        stack.callback(lambda: runner.run(cluster.__aexit__(None, None, None)))
        runner.run(_prepare(client))
        port, health, metrics = (stack.enter_context(held_port()) for _ in range(3))
        command = (*prefix, "env", "GOMAXPROCS=1", str(program))
        settings = {
            "server": {
                "webhooks": {"port": port, "tls": {"serverCertDir": str(folder)}},
                "healthProbes": {"port": health},
                "metrics": {"port": metrics},
            },
            "webhooks": {
                "systemComponentsConfig": {
                    "enabled": True,
                    "podNodeSelector": POD_NODE_SELECTOR,
                    "podTolerations": [
                        {"key": each.key, "operator": each.operator} for each in POD_TOLERATIONS
                    ],
                }
            },
        }
        server = Program(command, settings, UNLIMITED)
        process = stack.enter_context(resource_manager(server, started.kubeconfig, folder))
        _await_ready(f"http://127.0.0.1:{health}/readyz", process)
        yield [process], port


async def _prepare(client: Client) -> None:
    await install_crds(client)
    taints = [{"key": it.key, "value": it.value, "effect": it.effect} for it in TAINTS]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tainted"}}
    await client.create({**node, "spec": {"taints": taints}})


def _await_ready(url: str, process: Process) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        process.check()
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - on loopback
                return
        except (URLError, OSError) as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"the original is not ready: {error}") from error
        time.sleep(0.2)
