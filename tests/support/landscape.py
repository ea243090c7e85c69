"""A whole landscape for tests: a Garden, Seeds by the real gardenlet, and Shoots.

The operator is a process that restarts when it is killed, as the containers of the resource
managers do. The API servers of the Seeds log the requests of all ServiceAccounts.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from conformance.places.audit import AuditLog, refused
from pergola.api.kinds import SEED, SHOOT
from pergola.api.marks import OPERATION
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
    name_of,
    uid_of,
)
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.cli.up.garden_places import place_of
from pergola.cli.up.operator_process import operator_command
from pergola.kube.client import Client
from pergola.kube.kubeconfig import parse_cluster
from pergola.kube.yaml import dump
from pergola.operator.conditions import is_true
from pergola.operator.extension.installations import INSTALLATION, REGISTRATION
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.sandbox.child import Child
from pergola.sandbox.directory import write
from pergola.sandbox.landscape import (
    ONE_ZONE,
    Landscape,
    Reconciliation,
    admin_kubeconfig,
    create_project,
    create_seed,
    create_shoot,
    is_reconciled,
    landscape,
    succeeded,
)
from pergola.sandbox.process_node import Programs
from pergola.sandbox.simulated import Site
from pergola.testing.waiting import until, until_gone
from tests.support.garden_states import has_succeeded
from tests.support.garden_world import CONFIRMED, example

PATIENCE: Final = 900.0
"""Seconds; a busy machine is five times slower than a quiet one."""
_ACCOUNTS: Final = "system:serviceaccounts"
_MANAGER: Final = "gardener-resource-manager"
_EXTENSION: Final = "extension-"
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_TERMINATED: Final = "because it is being terminated"


@dataclass(frozen=True)
class SeedCluster:
    """A Seed and its cluster.

    Attributes:
        log: the requests of all ServiceAccounts.
        zones: of its nodes.
        patch: a merge patch of the Gardenlet of the examples.
        provider_local: whether provider-local serves its Shoots.
    """

    name: str
    site: Site
    log: AuditLog
    zones: Sequence[str] = ONE_ZONE
    patch: JsonObject | None = None
    provider_local: bool = False

    def requests(self) -> Iterator[JsonObject]:
        """Yield the requests of Pergola's resource managers so far, as audit events."""
        return (event for event in self.log.requests() if _account(event).name == _MANAGER)

    def writes(self) -> Iterator[JsonObject]:
        """Yield those that write, but not those of Leases."""
        for event in self.requests():
            is_lease = map_at(event, "objectRef").get("resource") == "leases"
            if event["verb"] in _WRITES and not is_lease:
                yield event

    def refused(self) -> list[str]:
        """Return a sentence for each request of Pergola that was forbidden.

        Except for Leases: a process that is removed, with its extension or its Shoot, loses its
        role before it can give up its Lease. And except for Events about the last objects of a
        namespace that is being deleted.
        """
        return [
            *refused(
                event
                for event in self.log.requests()
                if _is_own(_account(event))
                and not _is_lease_of_removed(event)
                and not _is_event_in_ending_namespace(event)
            )
        ]


@dataclass
class World:
    """A landscape whose Garden is reconciled.

    Attributes:
        clusters: its clusters.
        garden: a client of the virtual cluster.
        operator: its process.
        directory: of logs.
    """

    clusters: Landscape
    garden: Client
    operator: Child
    directory: Path
    stack: AsyncExitStack = field(repr=False)

    async def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig of the virtual cluster into a folder."""
        document = await place_of(self.clusters.garden).virtual()
        return write(folder / "virtual.kubeconfig", dump(document))

    async def install(self, extension: str, variables: Mapping[str, str] | None = None) -> None:
        """Create one of the Extensions of the examples, and wait until Gardener knows its types.

        Args:
            variables: its environment.
        """
        key = await self.clusters.install(extension, variables or {})
        runtime = self.clusters.garden.client
        await until(runtime, EXTENSION, key, lambda obj: is_true(obj, "Installed"))

    async def install_original(self, name: str) -> None:
        """Create the Extension of an original, and wait until Gardener knows its types.

        Args:
            name: `provider-aws` or `provider-local`.
        """
        key = await self.clusters.install_original(name)
        runtime = self.clusters.garden.client
        await until(runtime, EXTENSION, key, lambda obj: is_true(obj, "Installed"))

    @asynccontextmanager
    async def opened_seed(
        self,
        name: str,
        *,
        original: bool = False,
        zones: Sequence[str] = ONE_ZONE,
        patch: JsonObject | None = None,
        programs: Programs | None = None,
        provider_local: bool = False,
    ) -> AsyncGenerator[SeedCluster]:
        """Start a cluster for a Seed, and stop it when the block ends.

        Args:
            original: with the original's resource managers in place of Pergola's.
            zones: of its nodes.
            patch: a merge patch of the Gardenlet of the examples.
            programs: more programs of its nodes.
            provider_local: run provider-local, which is installed, in place of its stand-in.
        """
        log = AuditLog(self.directory, name, groups=(_ACCOUNTS,))
        opened = self.clusters.seed_cluster(
            name,
            flags=log.flags(),
            original=original,
            zones=zones,
            programs=programs,
            provider_local=provider_local,
        )
        async with opened as site:
            yield SeedCluster(name, site, log, zones, patch, provider_local)

    async def join(self, seed: SeedCluster) -> None:
        """Create the Seed of a cluster, and wait until it is healthy."""
        kubeconfig = await asyncio.to_thread(seed.site.sandbox.kubeconfig.read_bytes)
        chart = self.clusters.chart
        await create_seed(
            self.garden,
            kubeconfig,
            chart,
            seed.name,
            seed.zones,
            seed.patch,
            provider_local=seed.provider_local,
        )
        await self.healthy(SEED, Key("", seed.name))

    async def join_here(self, name: str) -> None:
        """Create a Seed in the runtime cluster of the Garden, and wait until it is healthy."""
        await create_seed(self.garden, None, self.clusters.chart, name)
        await self.healthy(SEED, Key("", name))

    async def seed(
        self, name: str, *, original: bool = False, patch: JsonObject | None = None
    ) -> SeedCluster:
        """Create a Seed in a cluster that lives as long as the landscape."""
        opened = self.opened_seed(name, original=original, patch=patch)
        seed = await self.stack.enter_async_context(opened)
        await self.join(seed)
        return seed

    async def shoot(self, name: str, seed: SeedCluster) -> Key:
        """Create a Shoot without workers, and wait until it is healthy."""
        patch = {"metadata": {"name": name}, "spec": {"seedName": seed.name}}
        key = await create_shoot(self.garden, patch)
        await self.healthy(SHOOT, key)
        return key

    async def healthy(self, kind: GroupVersionKind, key: Key) -> JsonObject:
        """Wait until an object is reconciled, and all of its conditions are true."""
        return await until(
            self.garden, kind, key, lambda obj: succeeded(Reconciliation(obj)), patience=PATIENCE
        )

    async def reconciled(self, kind: GroupVersionKind, key: Key) -> JsonObject:
        """Wait until an object is reconciled, whatever its conditions say."""
        return await until(
            self.garden,
            kind,
            key,
            lambda obj: is_reconciled(Reconciliation(obj)),
            patience=PATIENCE,
        )

    async def perform(self, kind: GroupVersionKind, key: Key, operation: str) -> JsonObject:
        """Request an operation by annotation, and wait until it is done and all is healthy."""
        patch: JsonObject = {"metadata": {"annotations": {OPERATION: operation}}}
        await self.garden.patch(kind, key, patch)
        return await self.performed(kind, key)

    async def performed(self, kind: GroupVersionKind, key: Key) -> JsonObject:
        """Wait until a requested operation is done and all is healthy."""

        def is_done(obj: JsonObject) -> bool:
            return OPERATION not in annotations_of(obj) and succeeded(Reconciliation(obj))

        return await until(self.garden, kind, key, is_done, patience=PATIENCE)

    async def delete(self, kind: GroupVersionKind, key: Key) -> None:
        """Delete an object with its confirmation, and wait until it is gone."""
        await self.garden.patch(kind, key, CONFIRMED)
        await self.garden.delete(kind, key)
        await until_gone(self.garden, kind, key, patience=PATIENCE)

    async def lost(self, seed: SeedCluster, before: Mapping[Key, str]) -> set[Key]:
        """Return the ManagedResources of a Seed that are gone, or not the same as before.

        Those of extensions do not count if Gardener removed the extension: it does so some time
        after the last Shoot that needed it.
        """
        after = await uids(seed.site.client)
        registrations = [f"{name_of(each)}-" for each in await self.garden.list(REGISTRATION)]
        installed = {name_of(each) for each in await self.garden.list(INSTALLATION)}
        return {
            key
            for key, uid in before.items()
            if after.get(key) != uid
            and (key.name in installed or not key.name.startswith(tuple(registrations)))
        }

    @asynccontextmanager
    async def client_of(self, key: Key, seed: SeedCluster) -> AsyncGenerator[Client]:
        """Connect to a Shoot with the kubeconfig that Gardener issues to its administrator."""
        kubeconfig = await admin_kubeconfig(self.garden, key)
        async with Client.connect(seed.site.reach(parse_cluster(kubeconfig, str(key)))) as client:
            yield client


@asynccontextmanager
async def living_landscape(name: str, directory: Path, *, aws: str = "") -> AsyncGenerator[World]:
    """Run a Garden with a project until the block ends.

    Args:
        directory: for logs; they stay.
        aws: the URL of an AWS in which the machines of Shoots are started, if not empty.
    """
    async with AsyncExitStack() as stack:
        clusters = await stack.enter_async_context(landscape(name, aws=aws))
        line, variables = await operator_command(clusters.garden, clusters.operator_environment)
        operator = Child("operator", line, directory, lambda: None, environment=variables)
        await operator.start()
        stack.push_async_callback(operator.stop)
        runtime = clusters.garden.client
        await runtime.create(example())
        await until(runtime, GARDEN, Key("", "local"), has_succeeded, patience=PATIENCE)
        access = VirtualCluster(runtime, reach=clusters.garden.reach)
        garden = await (await stack.enter_async_context(access)).client()
        await create_project(garden)
        yield World(clusters, garden, operator, directory, stack)


def _account(event: JsonObject) -> Key:
    """Return the ServiceAccount of a request."""
    *_, namespace, name = ("", "", *str(map_at(event, "user").get("username")).split(":"))
    return Key(namespace, name)


def _is_own(account: Key) -> bool:
    """Return whether Pergola runs as a ServiceAccount; all extensions of a Seed are Pergola's."""
    return account.name == _MANAGER or account.namespace.startswith(_EXTENSION)


def _is_lease_of_removed(event: JsonObject) -> bool:
    is_lease = map_at(event, "objectRef").get("resource") == "leases"
    return is_lease and _account(event) != Key("garden", _MANAGER)


def _is_event_in_ending_namespace(event: JsonObject) -> bool:
    is_event = map_at(event, "objectRef").get("resource") == "events"
    return is_event and _TERMINATED in str(map_at(event, "responseStatus").get("message"))


async def uids(client: Client) -> dict[Key, str]:
    """Return the identities of all ManagedResources of a cluster."""
    return {Key.of(obj): uid_of(obj) for obj in await client.list(MANAGED_RESOURCE)}


def processes(program: str, directory: Path) -> Iterator[int]:
    """Yield the ids of the processes of a site that run a program."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                line = (folder / "cmdline").read_bytes().decode(errors="replace")
                variables = (folder / "environ").read_bytes().decode(errors="replace")
                is_of_site = f"{directory}/" in line + variables
                if is_of_site and any(word.endswith(program) for word in line.split("\0")):
                    yield int(folder.name)
