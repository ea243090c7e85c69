"""A process that runs one container of the pods of a workload."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at, maps_at, name_of, namespace_of, uid_of
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.yaml import dump
from pergola.pki import Token, kubeconfig
from pergola.sandbox.child import Child
from pergola.sandbox.directory import write
from pergola.sandbox.process_node import volumes
from pergola.sandbox.process_node.place import Place
from pergola.sandbox.process_node.probe import is_ready
from pergola.sandbox.process_node.programs import NodeEnvironment, Program, adapt_file

_TAIL_BYTES: Final = 2048
_TAIL_LINES: Final = 5
_REFERENCE: Final = re.compile(r"\$(\$)|\$\(([A-Za-z_][\w.-]*)\)")
# The node's processes must not see the kubeconfigs of its owner.
_NOT_INHERITED: Final = ("KUBECONFIG", "TARGET_KUBECONFIG")


class Runnable(NamedTuple):
    """A container, and the program that runs it here."""

    container: JsonObject
    program: Program


class Access(NamedTuple):
    """The cluster in which a pod runs, and a token of its ServiceAccount; empty without one."""

    cluster: ClusterConfig
    token: str


class Exit(NamedTuple):
    """The exit of a process: its code, and the end of its log."""

    code: int
    log: str


class Process:
    """One process, with its files.

    Args:
        pod: the pod that it was started for; it runs the workload's other pods as well.
        access: how it reaches the cluster that it runs in.
        changed: called when it starts or exits.
    """

    def __init__(
        self,
        pod: JsonObject,
        runnable: Runnable,
        place: Place,
        shared: NodeEnvironment,
        access: "Access",
        changed: Callable[[], None],
    ) -> None:
        self.uid = uid_of(pod)
        self.place = place
        self._pod = pod
        self._container, self._program = runnable
        self._shared = shared
        self._access = access
        self._is_started = False
        self._temporary = place.directory / "tmp"
        environment = _environment(pod, self._container, place)
        # Files of a process that is killed go with its pod.
        environment["TMPDIR"] = str(self._temporary)
        if runnable.program.is_proxied:
            environment["HTTPS_PROXY"] = shared.proxy
        line = _line(pod, runnable, place, shared)
        name = str(self._container["name"])
        self._log = place.directory / f"{name}.log"
        self._child = Child(name, line, place.directory, changed, environment=environment)

    @property
    def restarts(self) -> int:
        """The number of times it exited by itself."""
        return int(self._child.state()["failures"])

    def last_exit(self) -> "Exit | None":
        """Return how it last exited by itself, or None if it never did."""
        code = self._child.exit_code
        return None if code is None else Exit(code, _tail(self._log))

    def write_files(self, find: volumes.Find) -> None:
        """Write the files that the container mounts; keep what did not change.

        Raises:
            MissingFile: an object that the pod mounts does not exist yet.
        """
        cluster, token = self._access
        files = volumes.mounted_files(self._pod, self._container, find, token)
        for path, content in files.items():
            adapted = adapt_file(content, self.place, self._shared, self._program)
            _write(self.place.file(path), adapted)
        if token:
            # Not every program accepts a token's file, and the token lasts longer than the process.
            own = kubeconfig("in-cluster", cluster.server, cluster.ca or b"", Token(token))
            _write(self.place.access, dump(own).encode())

    async def start(self) -> None:
        """Start it the first time; later it restarts by itself."""
        if not self._is_started:
            self._is_started = True
            self._temporary.mkdir(mode=0o700, exist_ok=True)
            await self._child.start()

    async def is_ready(self) -> bool:
        """Return whether it runs and its readiness probe succeeds."""
        if self._child.state()["state"] != "running":
            return False
        return await is_ready(self._container, self.place)

    async def stop(self) -> None:
        """Stop it."""
        await self._child.stop()


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace references `$(NAME)` to variables as a kubelet does.

    References to unknown variables stay, and `$$` is a dollar sign.
    """

    def value(reference: re.Match[str]) -> str:
        return reference[1] or variables.get(reference[2], reference[0])

    return _REFERENCE.sub(value, text)


def _line(pod: JsonObject, runnable: Runnable, place: Place, shared: NodeEnvironment) -> list[str]:
    container, program = runnable
    variables = dict(_variables(pod, container))
    # The program replaces the first word of the command, or the entry point of the image.
    given = (*container.get("command", ())[1:], *container.get("args", ()))
    args = tuple(place.localised(expanded(arg, variables)) for arg in given)
    return [*program.line, *program.adapt(args, place, shared)]


def _environment(pod: JsonObject, container: JsonObject, place: Place) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    own |= {name: place.localised(value) for name, value in _variables(pod, container)}
    if volumes.mounts_token(pod):
        own["KUBECONFIG"] = str(place.access)
    return own


def _variables(pod: JsonObject, container: JsonObject) -> Iterator[tuple[str, str]]:
    fields = {"metadata.name": name_of(pod), "metadata.namespace": namespace_of(pod)}
    for variable in maps_at(container, "env"):
        path = map_at(variable, "valueFrom", "fieldRef").get("fieldPath")
        value = variable.get("value") or fields.get(str(path))
        if value is not None:
            yield variable["name"], value


def _write(file: Path, content: bytes) -> None:
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(file, content)


def _tail(log: Path) -> str:
    """Return the last lines of a log, as many as a kubelet reports."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_TAIL_LINES:])
