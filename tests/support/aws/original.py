"""The original's extension for AWS as a process, outside of a landscape."""

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Final, TypeVar

from pergola.api.objects import JsonObject
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.kube.yaml import dump
from pergola.pki import TokenFile, kubeconfig
from pergola.sandbox import binaries
from pergola.sandbox.aws.environment import variables
from pergola.sandbox.on_demand import PROVIDER_AWS
from pergola.sandbox.processes import die_with
from tests.support.ports import held_port

T = TypeVar("T")

_CONFIG: Final[JsonObject] = {
    "apiVersion": "aws.provider.extensions.config.gardener.cloud/v1alpha1",
    "kind": "ControllerConfiguration",
    "clientConnection": {"qps": 100, "burst": 130},
    "etcd": {"storage": {"className": "gardener.cloud-fast", "capacity": "25Gi"}},
}
_WEBHOOKS: Final = (
    *("controlplane", "seedprovider", "seed-pvca", "cloudprovider", "shoot-service"),
    *("shoot-service-nginx-ingress", "shoot-configmap", "terraformer"),
)
_TAIL: Final = 20  # lines


class OriginalExtension:
    """gardener-extension-provider-aws, without its webhooks.

    Args:
        folder: for its files and its log.
        kubeconfig: of the seed.
        endpoint: of the simulated AWS.
        controllers: those that run.
    """

    def __init__(self, folder: Path, kubeconfig: Path, endpoint: str, *controllers: str) -> None:
        self._folder = folder
        self._kubeconfig = kubeconfig
        self._endpoint = endpoint
        self._controllers = controllers
        self._process: asyncio.subprocess.Process | None = None
        self.log = folder / f"{PROVIDER_AWS}.log"

    async def start(self) -> None:
        """Start it."""
        name = PROVIDER_AWS
        program = (await asyncio.to_thread(binaries.find, (name,)))[name]
        config, garden = self._folder / "config.yaml", self._folder / "garden.yaml"
        config.write_text(dump(_CONFIG))
        garden.write_text(dump(self._access(load(self._kubeconfig))))
        parent = os.getpid()
        with held_port() as port, self.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                program,
                f"--kubeconfig={self._kubeconfig}",
                f"--config-file={config}",
                f"--controllers={','.join(self._controllers)}",
                f"--disable-webhooks={','.join(_WEBHOOKS)}",
                "--webhook-config-server-host=127.0.0.1",
                f"--webhook-config-server-port={port}",
                f"--webhook-config-cert-dir={self._folder / 'certificates'}",
                "--metrics-bind-address=0",
                "--health-bind-address=0",
                "--leader-election=false",
                stdout=output,
                stderr=output,
                env={**os.environ, "GARDEN_KUBECONFIG": str(garden)} | variables(self._endpoint),
                preexec_fn=lambda: die_with(parent),
            )

    async def stop(self) -> None:
        """End it as a kubelet does.

        Raises:
            AssertionError: it had ended by itself.
        """
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is not None:
            raise self._ended(process)
        process.terminate()
        await process.wait()

    async def survive(self, waiting: Awaitable[T]) -> T:
        """Wait for something that happens while it runs, or while it was stopped.

        Raises:
            AssertionError: it ended by itself.
        """
        process = self._process
        if process is None:
            return await waiting
        awaited, ending = asyncio.ensure_future(waiting), asyncio.ensure_future(process.wait())
        try:
            await asyncio.wait({awaited, ending}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                raise self._ended(process)
            return await awaited
        finally:
            awaited.cancel()
            ending.cancel()

    def _ended(self, process: asyncio.subprocess.Process) -> AssertionError:
        last = "\n".join(self.log.read_text().splitlines()[-_TAIL:])
        return AssertionError(f"it ended with {process.returncode}: {last}")

    def _access(self, seed: ClusterConfig) -> JsonObject:
        """Return a kubeconfig of the garden, of which it accepts only files of tokens."""
        token = self._folder / "token"
        token.write_text("unused")
        return kubeconfig("garden", seed.server, seed.ca or b"", TokenFile(str(token)))
