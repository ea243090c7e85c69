"""AWS's real cloud controller manager as a process, in place of a container."""

import asyncio
import base64
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import aiohttp

from pergola.api.kinds import LEASE, SECRET
from pergola.api.objects import JsonObject, Key, map_at, maps_at, namespace_of
from pergola.kube.client import Client
from pergola.manifests.shoot_access import KUBECONFIG_DIRECTORY
from pergola.providers.aws.control_plane.render.cloud_controller import NAME
from pergola.sandbox import binaries
from pergola.sandbox.aws.environment import variables
from pergola.sandbox.on_demand import AWS_CLOUD_CONTROLLER_MANAGER
from pergola.sandbox.process_node.place import Place
from pergola.sandbox.process_node.volumes import mounted_files
from pergola.sandbox.processes import die_with
from pergola.testing.waiting import until
from tests.support.ports import held_port

T = TypeVar("T")
Objects = Mapping[tuple[str, Key], JsonObject]
"""Objects by kind and key."""

IN_SHOOT: Final = Key("kube-system", NAME)
"""Its ServiceAccount, and its Lease."""
_PORT: Final = 10258
_TAIL: Final = 30  # lines


class CloudController:
    """The process of a container.

    It differs from the container in four things: the paths of files, wherever they are named; the
    port and address of its server; the address of AWS; and the metadata service, which it must not
    ask.

    Args:
        pod: the template of the Deployment, with its namespace.
        objects: that the pod refers to, by kind and key.
        folder: for its files and its output.
        endpoint: of the simulated AWS.

    Attributes:
        container: as it was rendered.
        output: what it logs.
    """

    def __init__(self, pod: JsonObject, objects: Objects, folder: Path, endpoint: str) -> None:
        [self.container] = maps_at(pod, "spec", "containers")
        self._pod = pod
        self._objects = objects
        mounts = tuple(each["mountPath"] for each in maps_at(self.container, "volumeMounts"))
        self._place = Place(folder / "files", "127.0.0.1", mounts)
        self._endpoint = endpoint
        self._ending: asyncio.Task[int]
        self._port = 0
        self.output = folder / f"{NAME}.log"

    def write_files(self) -> None:
        """Write the files that the container mounts."""

        def find(kind: str, key: Key) -> JsonObject | None:
            return self._objects.get((kind, key))

        for path, content in mounted_files(self._pod, self.container, find, "").items():
            file = self._place.file(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._place.localised(content.decode()))

    @asynccontextmanager
    async def running(self, shoot: Client) -> AsyncGenerator[None]:
        """Run the process until the block ends; it leads when the block begins.

        Raises:
            AssertionError: it ended by itself.
        """
        name = AWS_CLOUD_CONTROLLER_MANAGER
        program = (await asyncio.to_thread(binaries.find, (name,)))[name]
        parent = os.getpid()
        with held_port() as port, self.output.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                program,
                *self._arguments(port),
                env=self._variables(),
                stdout=output,
                stderr=output,
                preexec_fn=lambda: die_with(parent),
            )
            self._ending = asyncio.create_task(process.wait())
            self._port = port
            try:
                await self.survive(until(shoot, LEASE, IN_SHOOT, _is_held))
                yield
                self._check()
            finally:
                if not self._ending.done():
                    process.kill()
                await self._ending
        # Another one would wait until it expires.
        await shoot.delete(LEASE, IN_SHOOT)

    async def survive(self, waiting: Awaitable[T]) -> T:
        """Wait for something that happens while the process runs.

        Raises:
            AssertionError: it ended by itself.
        """
        awaited = asyncio.ensure_future(waiting)
        await asyncio.wait({awaited, self._ending}, return_when=asyncio.FIRST_COMPLETED)
        try:
            self._check()
            return await awaited
        finally:
            awaited.cancel()

    async def get(self, path: str, *, known: bool = False) -> tuple[int, str]:
        """Return the status and the text of its server's answer.

        Args:
            known: whether the client authenticates, with the token of the process.
        """
        token = self._place.file(f"{KUBECONFIG_DIRECTORY}/token").read_text()
        headers = {"Authorization": f"Bearer {token}"} if known else {}
        url = f"https://127.0.0.1:{self._port}{path}"
        # Like probes and Prometheus, which do not verify its certificate.
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, ssl=False) as answer,
        ):
            return answer.status, await answer.text()

    def _arguments(self, port: int) -> list[str]:
        """Return the arguments of the container, with the port and the address of this machine."""
        _, *arguments = self.container["command"]
        found = [
            self._place.localised(re.sub(rf"(?<=port=){_PORT}$", str(port), each))
            for each in arguments
        ]
        return [*found, "--bind-address=127.0.0.1"]

    def _variables(self) -> dict[str, str]:
        given = {each["name"]: self._value(each) for each in maps_at(self.container, "env")}
        found = {name: self._place.localised(value) for name, value in given.items()}
        return found | variables(self._endpoint)

    def _value(self, variable: JsonObject) -> str:
        if "value" in variable:
            return str(variable["value"])
        source = variable["valueFrom"]["secretKeyRef"]
        key = Key(namespace_of(self._pod), source["name"])
        data = map_at(self._objects[SECRET.kind, key], "data")
        return base64.b64decode(data[source["key"]]).decode()

    def _check(self) -> None:
        if self._ending.done():
            last = "\n".join(self.output.read_text().splitlines()[-_TAIL:])
            raise AssertionError(f"it ended with {self._ending.result()}: {last}")


def _is_held(lease: JsonObject) -> bool:
    return bool(map_at(lease, "spec").get("holderIdentity"))
