"""One run of a Garden's flows: its landscape, and the means to read and write."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.garden.components.component import Component, Rendered
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential, Credentials
from pergola.kube.client import Client
from pergola.operator.run.build import Built
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.snapshot import take
from pergola.operator.run.waiting import Note, Problem, unnoted, wait_until
from pergola.operator.virtual_cluster import Reach, VirtualCluster
from pergola.runtime.clock import Clock

TakeSnapshot: TypeAlias = Callable[[Landscape, Reach], Awaitable[None]]
"""Takes a full snapshot of the main etcd."""


@dataclass(slots=True, kw_only=True)
class Run:
    """The landscape and the clusters that the tasks of one reconciliation share.

    Attributes:
        client: Of the runtime cluster.
        built: The landscape, and the secrets manager that generates its credentials.
        virtual: Access to the virtual cluster, once it has been deployed.
        note: Receives the objects that tasks wait for.
        snapshot: Takes a snapshot of etcd.
        learnt: What the deployed components have learnt, by name.
    """

    client: Client
    clock: Clock
    deployer: Deployer
    virtual: VirtualCluster
    built: Built
    note: Note = unnoted
    snapshot: TakeSnapshot = take
    learnt: dict[str, Landscape] = field(default_factory=dict)

    def current(self) -> Landscape:
        """Return the landscape, with all credentials that were generated so far."""
        return self._with_credentials(self.built.landscape)

    async def virtual_client(self) -> Client:
        """Return a client of the virtual cluster.

        Raises:
            NotConnected: There is no kubeconfig with a token yet.
            KubeError: The API server refused, or did not answer.
        """
        return await self.virtual.client()

    async def wait(
        self, gvk: GroupVersionKind, key: Key, problem_of: Problem, limit: float
    ) -> JsonObject | None:
        """Wait for an object of the runtime cluster, as `wait_until` does."""
        return await wait_until(self.client, gvk, key, problem_of, limit, self.note)

    async def wait_ready(self, rendered: Rendered, limit: float) -> None:
        """Wait until applied objects are ready, as `Deployer.wait` does."""
        await self.deployer.wait(rendered, limit)

    async def generate_irreplaceable(self, components: Iterable[Component]) -> None:
        """Generate the authorities, and what else cannot be replaced once it is lost.

        This comes before anything is deployed: while one is lost, nothing may change, and the
        volume of an etcd that is there before its key proves that the key is lost.

        Raises:
            SecretLost: One is lost, and not given up.
            SecretsManagerError: One cannot be generated or adopted.
            KubeError: The API server refused, or did not answer.
            Failures: Several failed with such errors.
        """
        await self.built.generate_authorities()
        for component in components:
            landscape = self.current()
            if component.absent(landscape) is None and any(_irreplaceable(component, landscape)):
                learnt = await component.learn(landscape, self) or landscape
                await self.generate(_irreplaceable(component, learnt))

    async def generate(self, credentials: Iterable[Credential]) -> None:
        """Generate the credentials that do not exist yet.

        Raises:
            SecretsManagerError: One cannot be generated.
            KubeError: The API server refused, or did not answer.
            Failures: Several failed with such errors.
        """
        await self.built.generate(credentials)

    async def deploy(self, component: Component) -> Rendered:
        """Deploy a component, stage by stage; return the objects of the last one.

        Raises:
            OperatorError: A stage cannot learn, or await, what it needs.
            SecretsManagerError: A credential cannot be generated.
            KubeError: A cluster refused, or did not answer.
            Failures: Several credentials failed with such errors.
        """
        landscape, rendered = self.current(), Rendered()
        for stage in component.stages:
            learnt = await stage.learn(landscape, self)
            if learnt is None:
                continue
            await self.generate(stage.credentials(learnt))
            landscape = self._with_credentials(learnt)
            self.learnt[component.name] = landscape
            rendered = stage.render(landscape).annotated()
            await self.deployer.apply(rendered)
            await stage.finish(landscape, self)
        return rendered

    def _with_credentials(self, landscape: Landscape) -> Landscape:
        generated = {**landscape.credentials.generated, **self.built.secrets.generated}
        return landscape.with_credentials(Credentials(generated))


def _irreplaceable(component: Component, landscape: Landscape) -> Iterator[Credential]:
    for credential in component.credentials(landscape):
        if credential.options.irreplaceable is not None:
            yield credential
