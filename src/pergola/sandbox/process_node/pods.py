"""The controller of a process node: processes for each workload, as long as it has pods."""

import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from pergola.api.kinds import POD, SERVICE_ACCOUNT
from pergola.api.objects import JsonObject, Key, map_at, maps_at, namespace_of, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, NotFound
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.clock import SystemClock
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.controlling.watches import Events
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.process_node import pod_status
from pergola.sandbox.process_node.folders import Folders
from pergola.sandbox.process_node.group import Group
from pergola.sandbox.process_node.observe import Observed
from pergola.sandbox.process_node.place import Place, free_place
from pergola.sandbox.process_node.process import Access, Process, Runnable
from pergola.sandbox.process_node.programs import NodeEnvironment, Programs, program_of
from pergola.sandbox.process_node.volumes import MissingFile, mounts_token

_PROBE_SECONDS: Final = 0.2
_AGAIN_SECONDS: Final = 1.0
_TOKEN_SECONDS: Final = 86_400


class Setup(NamedTuple):
    """The directories, programs and environments of a node.

    Attributes:
        directory: of their files.
        claims: of the data of claims.
        environment: returns what the processes of a namespace share.
    """

    directory: Path
    claims: Path
    programs: Programs
    environment: Callable[[str], Awaitable[NodeEnvironment]]


class Pods:
    """A reconciler of workloads: all pods of one ReplicaSet or StatefulSet share processes.

    Attributes:
        exits: notified with the key of a workload whose process started or exited.
        events: says why a pod cannot start.

    Args:
        cluster: where processes reach the API server.
        places: those of the running processes, which it keeps up to date.
    """

    def __init__(
        self,
        client: Client,
        cluster: ClusterConfig,
        observed: Observed,
        setup: Setup,
        places: dict[Key, Place],
    ) -> None:
        self.exits: Events[Key] = Events()
        self.events = Recorder(client, "process-node", clock=SystemClock(), action="Start")
        self._client = client
        self._cluster = cluster
        self._observed = observed
        self._setup = setup
        self._places = places
        self._groups: dict[Key, Group] = {}
        self._random = random.Random()  # noqa: S311 - addresses, not secrets

    async def reconcile(self, workload: Key) -> Outcome:
        """Run a process for a workload's pods, and report it in their status."""
        pods = list(self._observed.pods_of(workload))
        await self._stop_for_others(workload, pods)
        if not pods:
            return DONE
        try:
            group = self._groups.get(workload) or await self._prepare(workload, pods[0])
            group.write_files(self._observed.find)
            await group.start()
        except MissingFile as missing:
            await self._report_waiting(pods, pod_status.CREATING, str(missing))
            return DONE  # until the object changes
        except (NotFound, Forbidden) as gone:  # its ServiceAccount, while a namespace is deleted
            if isinstance(gone, Forbidden) and not gone.is_namespace_terminating:
                raise
            await self._report_waiting(pods, pod_status.CREATING, str(gone))
            return Again(_AGAIN_SECONDS)
        except (SandboxError, OSError) as error:
            await self._report_waiting(pods, pod_status.CANNOT_START, str(error))
            for pod in pods:
                self.events.warning(Regarding.of(pod), "Failed", str(error))
            raise
        ready, restarts, last = await group.is_ready(), group.restarts, group.last_exit()
        await self._report(
            pods,
            lambda pod: pod_status.running(pod, ready=ready, restarts=restarts, last_exit=last),
        )
        return DONE if ready else Again(_PROBE_SECONDS)

    async def _report_waiting(self, pods: Iterable[JsonObject], reason: str, problem: str) -> None:
        await self._report(pods, lambda pod: pod_status.waiting(pod, reason, problem))

    async def close(self) -> None:
        """Stop all processes."""
        for workload, group in list(self._groups.items()):
            await self._stop(workload, group)

    async def _stop_for_others(self, workload: Key, pods: list[JsonObject]) -> None:
        """Stop the processes if the pod that they were started for is gone."""
        group = self._groups.get(workload)
        if group is not None and all(uid_of(pod) != group.uid for pod in pods):
            await self._stop(workload, group)

    async def _stop(self, workload: Key, group: Group) -> None:
        self._places.pop(workload, None)
        await group.stop()
        del self._groups[workload]

    async def _prepare(self, workload: Key, pod: JsonObject) -> Group:
        runnables = self._runnables(pod)
        containers = [runnable.container for runnable in runnables]
        ports = [port["containerPort"] for each in containers for port in maps_at(each, "ports")]
        address, others = free_place(ports, self._random)
        directory = self._setup.directory / workload.namespace / workload.name
        place = Place(directory, address, ports=others)
        token = await self._token(pod) if mounts_token(pod) else ""
        environment = await self._setup.environment(workload.namespace)
        folders = Folders(
            pod,
            own=directory / "files",
            short=environment.directory,
            claims=self._setup.claims,
        )
        group = Group(
            tuple(
                Process(
                    pod,
                    runnable,
                    replace(place, mounts=folders.make(runnable.container)),
                    environment,
                    Access(self._cluster, token),
                    changed=lambda: self.exits.notify(workload),
                )
                for runnable in runnables
            ),
            folders,
        )
        self._groups[workload] = group
        self._places[workload] = place
        return group

    def _runnables(self, pod: JsonObject) -> list[Runnable]:
        """Return the containers whose programs the node has; the others are only reported."""
        found = [
            Runnable(container, program)
            for container in maps_at(pod, "spec", "containers")
            if (program := program_of(container, self._setup.programs)) is not None
        ]
        if not found:
            raise SandboxError(
                f"Pod {Key.of(pod)}: this node runs no image of its containers, but only "
                f"{', '.join(self._setup.programs)}"
            )
        return found

    async def _token(self, pod: JsonObject) -> str:
        account = Key(namespace_of(pod), pod["spec"].get("serviceAccountName", "default"))
        request: JsonObject = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_SECONDS},
        }
        answer = await self._client.create_subresource(SERVICE_ACCOUNT, account, "token", request)
        return str(map_at(answer, "status")["token"])

    async def _report(
        self, pods: Iterable[JsonObject], status_of: Callable[[JsonObject], JsonObject]
    ) -> None:
        for pod in pods:
            status = status_of(pod)
            if pod_status.differs(pod, status):
                with suppress(NotFound):
                    await self._client.patch(
                        POD, Key.of(pod), {"status": status}, subresource="status"
                    )
