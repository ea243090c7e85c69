"""Single steps of an infrastructure, run against an existing network.

```python
cluster = await StepsOf.managed(client)
await cluster.ensure(security_group.steps)
assert aws.writes() == [...]
```
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Self

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.extensions.provider_config import read_strict
from pergola.flow import Saver, State, run
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG, InfrastructureConfig
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.observe import observe
from pergola.providers.aws.resources.step import Step, Work, graph_of
from pergola.sandbox.aws.world import Network, managed_config

TECHNICAL_ID: Final = "shoot--garden--web"
PUBLIC_KEY: Final = (
    b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN7REH7APAgHgO4TVMQB9wc7EkuU82XO8PdvXHwge9Nm"
)
OTHER_PUBLIC_KEY: Final = (
    b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJgKdEyFJ5F4v8ceXcBD496kL4lN3DGv5Wr9VIefDEE0"
)

StepsOfKind = Callable[[Desired], list[Step]]


@dataclass(slots=True)
class StepsOf:
    """A cluster whose steps can run singly; each run first observes AWS.

    Attributes:
        saved: the state that was written last.
        warnings: the warnings of the last run.
    """

    client: AwsClient
    network: Network
    raw: JsonObject
    desired: Desired
    saved: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    async def managed(
        cls, client: AwsClient, *, zones: Iterable[str] = ("a",), **config: JsonObject
    ) -> Self:
        """Return a cluster with managed zones, in a VPC that has their subnets already.

        Args:
            config: fields of the InfrastructureConfig, such as `elasticFileSystem`.
        """
        network = await Network.complete(client, zones=zones)
        raw = {**managed_config(client.region, zones=zones, vpc=network.id), **config}
        cluster = cls(client, network, raw, _desired(client, raw))
        for zone in zones:
            where = f"{client.region}{zone}"
            for key, subnet in (
                (keys.SUBNET_WORKERS, network.workers[zone]),
                (keys.SUBNET_PUBLIC, network.public[zone]),
                (keys.SUBNET_INTERNAL, network.internal[zone]),
            ):
                cluster.saved[keys.zone_key(where, key)] = subnet
        cluster.saved[keys.VPC] = network.id
        return cluster

    @classmethod
    def byo(
        cls, client: AwsClient, network: Network, *, group: str = "", **config: JsonObject
    ) -> Self:
        """Return a cluster whose subnets are user-provided."""
        raw = {**network.config(group=group), **config}
        return cls(client, network, raw, _desired(client, raw), {keys.VPC: network.id})

    @classmethod
    def created(cls, client: AwsClient, config: JsonObject) -> Self:
        """Return a cluster without any resources, which the steps are to create."""
        return cls(client, Network(client, "", ""), config, _desired(client, config))

    def want(self, **changes: object) -> None:
        """Change fields of the desired infrastructure."""
        self.desired = replace(self.desired, **changes)  # type: ignore[arg-type]  # checked at run time

    def configure(self, **fields: JsonObject) -> None:
        """Change fields of the config."""
        self.raw = {**self.raw, **fields}
        self.want(config=read_config(self.raw))

    async def work(self) -> Work:
        """Return the input of steps, with AWS as it is now."""
        state = State(self.saved)
        snapshot = await observe(self.client, self.desired, state)
        return Work(
            aws=self.client, desired=self.desired, state=state, snapshot=snapshot, poll_seconds=0.01
        )

    async def ensure(self, *kinds: StepsOfKind) -> None:
        """Run steps, as if those that they depend on were done.

        Raises:
            FlowFailed: a step failed; `saved` has the resources created before.
        """
        work = await self.work()
        self.warnings = work.warnings
        saver = Saver(work.state, self._save, interval=0.0)
        work.save = saver.flush
        await run(graph_of("steps", self._alone(kinds), work), saver=saver)

    async def plan(self, *kinds: StepsOfKind) -> dict[str, Note]:
        """Return the planned actions of steps by name, without skipped steps."""
        work = await self.work()
        return {step.name: step.decide(work).note for step in self._alone(kinds) if not step.skip}

    async def groups(self) -> dict[str, JsonObject]:
        """Return the security groups of the VPC, by their names."""
        found = await self.client.pages(
            "ec2",
            "DescribeSecurityGroups",
            "SecurityGroups",
            Filters=[{"Name": "vpc-id", "Values": [self.network.id]}],
        )
        return {group["GroupName"]: group for group in found}

    def _alone(self, kinds: Iterable[StepsOfKind]) -> list[Step]:
        several = [step for kind in kinds for step in kind(self.desired)]
        present = {step.name for step in several}
        return [
            replace(step, after=tuple(name for name in step.after if name in present))
            for step in several
        ]

    async def _save(self, data: dict[str, str]) -> None:
        self.saved = data


def read_config(raw: JsonObject) -> InfrastructureConfig:
    """Parse a config from its JSON."""
    return read_strict(InfrastructureConfig, raw, INFRASTRUCTURE_CONFIG)


def _desired(client: AwsClient, raw: JsonObject) -> Desired:
    return Desired(
        technical_id=TECHNICAL_ID,
        region=client.region,
        config=read_config(raw),
        node_range="10.180.0.0/16",
        shoot_uid="0b7c0a3e-6f0b-4a57-8a9e-7c3c8f1d2e4f",
        ssh_public_key=PUBLIC_KEY,
    )
