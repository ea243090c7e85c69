"""A run of a Garden's tasks whose virtual cluster is any API server."""

import asyncio
from dataclasses import dataclass, field

from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.client import Client
from pergola.operator.run.build import IDENTITY, Built
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.run import Run
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.clock import SystemClock
from pergola.secrets_manager import SecretsManager


@dataclass
class Notes:
    """The problems that tasks report while they wait.

    Attributes:
        all: Each problem, the latest one last.
    """

    all: list[str] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, subject: str, problem: str) -> None:
        """Keep a problem."""
        if problem:
            self.all.append(f"{subject}: {problem}")
            self._changed.set()

    async def until(self, text: str) -> None:
        """Return when a problem with this text was noted."""
        while not any(text in problem for problem in self.all):
            self._changed.clear()
            await self._changed.wait()


async def garden_run(
    runtime: Client, virtual: Client, landscape: Landscape, notes: Notes | None = None
) -> Run:
    """Return a run on two clusters, which may be the same."""
    clock = SystemClock()
    secrets = await SecretsManager.open(runtime, NAMESPACE, IDENTITY, clock=clock)
    return Run(
        client=runtime,
        clock=clock,
        deployer=Deployer(runtime),
        virtual=GivenVirtualCluster(virtual),
        built=Built(landscape, secrets),
        note=notes or Notes(),
    )


class GivenVirtualCluster(VirtualCluster):
    """A virtual cluster whose client is given."""

    def __init__(self, given: Client) -> None:
        super().__init__(given)
        self._given = given

    async def client(self) -> Client:
        """Return the given client."""
        return self._given
