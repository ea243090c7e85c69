"""AWS's real cloud controller manager as a process, in place of a container."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp

from pergola.api.kinds import LEASE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.manifests.shoot_access import KUBECONFIG_DIRECTORY
from pergola.providers.aws.control_plane.render.cloud_controller import CONTAINER, NAME
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import AWS_CLOUD_CONTROLLER_MANAGER
from pergola.testing.waiting import until
from tests.support.aws.container_process import ContainerProcess, Objects
from tests.support.ports import held_port

IN_SHOOT: Final = Key("kube-system", NAME)
"""Its ServiceAccount, and its Lease."""
_PORT: Final = 10258


class CloudController(ContainerProcess):
    """The process of the container, whose server has another port and address."""

    def __init__(self, pod: JsonObject, objects: Objects, folder: Path, endpoint: str) -> None:
        super().__init__(pod, CONTAINER, objects, folder, endpoint)
        self._port = 0

    @asynccontextmanager
    async def running(self, shoot: Client) -> AsyncGenerator[None]:
        """Run the process until the block ends; it leads when the block begins.

        Raises:
            AssertionError: it ended by itself.
        """
        name = AWS_CLOUD_CONTROLLER_MANAGER
        program = (await asyncio.to_thread(binaries.find, (name,)))[name]
        with held_port() as self._port:
            async with self.started(program, "--bind-address=127.0.0.1"):
                await self.survive(until(shoot, LEASE, IN_SHOOT, is_held))
                yield
        # Another one would wait until it expires.
        await shoot.delete(LEASE, IN_SHOOT)

    def arguments(self) -> list[str]:
        """Return the arguments of the container, with the port of this machine."""
        own = str(self._port)
        return [re.sub(rf"(?<=port=){_PORT}$", own, each) for each in super().arguments()]

    async def get(self, path: str, *, known: bool = False) -> tuple[int, str]:
        """Return the status and the text of its server's answer.

        Args:
            known: whether the client authenticates, with the token of the process.
        """
        token = self.place.file(f"{KUBECONFIG_DIRECTORY}/token").read_text()
        headers = {"Authorization": f"Bearer {token}"} if known else {}
        url = f"https://127.0.0.1:{self._port}{path}"
        # Like probes and Prometheus, which do not verify its certificate.
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, ssl=False) as answer,
        ):
            return answer.status, await answer.text()


def is_held(lease: JsonObject) -> bool:
    """Return whether a process has a Lease."""
    return bool(map_at(lease, "spec").get("holderIdentity"))
