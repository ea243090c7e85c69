"""One run of a Garden's flows: the landscape as tasks extend it, and the means to write."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.garden.components.component import Component
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential, Credentials
from pergola.kube.client import Client
from pergola.operator.run.build import Built, add_credentials
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.snapshot import take
from pergola.operator.run.waiting import Note, Problem, unnoted, wait_until
from pergola.operator.virtual_cluster import Reach, VirtualCluster
from pergola.runtime.clock import Clock

TakeSnapshot: TypeAlias = Callable[[Landscape, Reach], Awaitable[None]]
"""Takes a full snapshot of the main etcd."""


@dataclass(slots=True)
class Run:
    """The shared state of the tasks of one reconciliation.

    Attributes:
        client: Of the runtime cluster.
        built: The landscape, and the secrets manager that generated its credentials.
        virtual: Access to the virtual cluster, once it has been deployed.
        note: Receives the objects that tasks wait for.
        snapshot: Takes a snapshot of etcd.
    """

    client: Client
    clock: Clock
    deployer: Deployer
    virtual: VirtualCluster
    built: Built
    note: Note = unnoted
    snapshot: TakeSnapshot = take

    def current(self) -> Landscape:
        """Return the current landscape."""
        return self.built.landscape

    def update(self, **fields: Any) -> None:
        """Set attributes of the landscape that a task determined."""
        self.built = replace(self.built, landscape=replace(self.built.landscape, **fields))

    async def wait(
        self, gvk: GroupVersionKind, key: Key, problem_of: Problem, limit: float
    ) -> JsonObject | None:
        """Wait for an object of the runtime cluster, as `wait_until` does."""
        return await wait_until(self.client, gvk, key, problem_of, limit, self.note)

    async def generate_for(self, components: Iterable[Component]) -> None:
        """Generate the credentials of components, and add them to the landscape.

        Raises:
            SecretsManagerError: One cannot be generated.
            KubeError: The API server refused, or did not answer.
        """
        found = await add_credentials(self.built.landscape, self.built.secrets, components)
        self.update(credentials=found.credentials)

    async def generate(self, credential: Credential) -> None:
        """Generate another credential, and add it to the landscape.

        Raises:
            SecretsManagerError: It cannot be generated.
            KubeError: The API server refused, or did not answer.
        """
        secrets = self.built.secrets
        await secrets.generate(credential.config, credential.options)
        self.update(credentials=Credentials(dict(secrets.generated)))
