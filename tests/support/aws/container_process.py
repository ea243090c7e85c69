"""A container of a rendered pod as a process, with its arguments, variables and files."""

import asyncio
import base64
import os
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, maps_at, namespace_of
from pergola.sandbox.aws.environment import variables
from pergola.sandbox.process_node.folders import Folders
from pergola.sandbox.process_node.place import Place
from pergola.sandbox.process_node.process import expanded
from pergola.sandbox.process_node.volumes import mounted_files
from pergola.sandbox.processes import die_with

T = TypeVar("T")
Objects = Mapping[tuple[str, Key], JsonObject]
"""Objects by kind and key."""
_TAIL: Final = 30  # lines


class ContainerProcess:
    """The process of a container.

    It differs from the container in the paths of files, wherever they are named; in the address of
    AWS; and in the metadata service, which it must not ask.

    Args:
        pod: the template of the Deployment, with its namespace.
        name: of the container.
        objects: that the pod refers to, by kind and key.
        folder: for its output.
        endpoint: of the simulated AWS.
        folders: of the pod, if it has other containers; by default they are in its own folder.

    Attributes:
        container: as it was rendered.
        output: what it logs.
    """

    def __init__(
        self,
        pod: JsonObject,
        name: str,
        objects: Objects,
        folder: Path,
        endpoint: str,
        folders: Folders | None = None,
    ) -> None:
        [self.container] = (
            each for each in maps_at(pod, "spec", "containers") if each["name"] == name
        )
        self._pod = pod
        self._objects = objects
        mounts = (folders or pod_folders(pod, folder)).make(self.container)
        self.place = Place(folder, "127.0.0.1", mounts)
        self._endpoint = endpoint
        self._ending: asyncio.Task[int]
        self.output = folder / f"{name}.log"

    def write_files(self) -> None:
        """Write the files that the container mounts."""

        def find(kind: str, key: Key) -> JsonObject | None:
            return self._objects.get((kind, key))

        for path, content in mounted_files(self._pod, self.container, find, "").items():
            file = self.place.file(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.place.localised(content.decode()))

    @asynccontextmanager
    async def started(self, program: Path, *more: str) -> AsyncGenerator[None]:
        """Run a program in place of the container's until the block ends.

        Args:
            more: arguments in addition to the container's.

        Raises:
            AssertionError: it ended by itself.
        """
        parent = os.getpid()
        with self.output.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                program,
                *self.arguments(),
                *more,
                env=self.variables(),
                stdout=output,
                stderr=output,
                preexec_fn=lambda: die_with(parent),
            )
            self._ending = asyncio.create_task(process.wait())
            try:
                yield
                self._check()
            finally:
                if not self._ending.done():
                    process.kill()
                await self._ending

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

    def arguments(self) -> list[str]:
        """Return the arguments of the container for this machine."""
        given = self._given()
        line = [*(self.container.get("command") or [])[1:], *(self.container.get("args") or [])]
        return [self.place.localised(expanded(each, given)) for each in line]

    def variables(self) -> dict[str, str]:
        """Return its environment."""
        found = {name: self.place.localised(value) for name, value in self._given().items()}
        return found | variables(self._endpoint)

    def _given(self) -> dict[str, str]:
        return {each["name"]: self._value(each) for each in maps_at(self.container, "env")}

    def _value(self, variable: JsonObject) -> str:
        if "value" in variable:
            return str(variable["value"])
        if "fieldRef" in variable["valueFrom"]:
            return str(self.container["name"])
        source = variable["valueFrom"]["secretKeyRef"]
        key = Key(namespace_of(self._pod), source["name"])
        data = map_at(self._objects[SECRET.kind, key], "data")
        return base64.b64decode(data[source["key"]]).decode()

    def _check(self) -> None:
        if self._ending.done():
            last = "\n".join(self.output.read_text().splitlines()[-_TAIL:])
            raise AssertionError(f"it ended with {self._ending.result()}: {last}")


def pod_folders(pod: JsonObject, folder: Path) -> Folders:
    """Return the folders of a pod's volumes, in a folder with a path that is short for sockets."""
    return Folders(pod, own=folder / "files", short=folder, claims=folder / "claims")
