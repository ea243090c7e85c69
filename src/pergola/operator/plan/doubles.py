"""Stand-ins for the parts of a run that write elsewhere or wait."""

from typing import TypeAlias

from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key
from pergola.garden.components.component import Removable, Rendered
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.operator.plan.client import Rehearsal
from pergola.operator.run.deploy import Deployer
from pergola.operator.virtual_cluster import NotConnected, Reach, VirtualCluster

Applied: TypeAlias = tuple[str, GroupKind, Key]
"""An object: its ManagedResource (empty if it has none), its kind and its key."""


class RehearsedDeployer(Deployer):
    """A deployer that never waits, and records the objects that it applies."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._applied: set[Applied] = set()

    async def apply(self, rendered: Rendered) -> None:
        """Apply the objects, and record them."""
        self._applied |= {("", *_identity(obj)) for obj in rendered.direct}
        for managed in rendered.managed:
            self._applied |= {(managed.name, *_identity(obj)) for obj in managed.objects}
        await super().apply(rendered)

    async def wait(self, rendered: Rendered, limit: float) -> None:
        """Return at once: a rehearsal does not change health."""

    async def wait_removed(self, removable: Removable, limit: float) -> None:
        """Return at once: a rehearsal removes nothing."""

    def taken(self) -> set[Applied]:
        """Return the objects that were applied since the last call."""
        taken, self._applied = self._applied, set()
        return taken


class RehearsedVirtualCluster(VirtualCluster):
    """A virtual cluster that is only read.

    Args:
        runtime: Reads the kubeconfig in the runtime cluster.
    """

    def __init__(self, runtime: Client, reach: Reach | None = None) -> None:
        super().__init__(runtime, reach=reach)
        self._rehearsal: Rehearsal | None = None
        self._problem = ""

    async def client(self) -> Client:
        """Return a client of the virtual cluster that keeps its writes.

        Raises:
            NotConnected: There is no kubeconfig with a token yet, or the cluster does not answer.
        """
        if self._problem:
            raise NotConnected(self._problem)
        if self._rehearsal is None:
            live = await super().client()
            try:
                await live.get_raw("/version")
            except KubeError as error:
                self._problem = "the virtual cluster cannot be reached from here"
                raise NotConnected(f"{self._problem}: {error}") from None
            self._rehearsal = Rehearsal(live)
        return self._rehearsal

    @property
    def rehearsal(self) -> Rehearsal | None:
        """The client, if the virtual cluster was reached."""
        return self._rehearsal


async def no_snapshot(landscape: Landscape, reach: Reach) -> None:
    """Return without taking a snapshot."""


def _identity(obj: JsonObject) -> tuple[GroupKind, Key]:
    return GroupVersionKind.of(obj).group_kind, Key.of(obj)
