"""Infrastructure in AWS in `pergola up`: one of each pattern, simulated by moto.

moto is in the extra `testing`.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from pergola.cli.up.story import UpError, within

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.up.story import Story
    from pergola.cloud.aws import AwsClient
    from pergola.kube.client import Client
    from pergola.providers.aws.show import Thing
    from pergola.sandbox.aws.corrections import CorrectedAws

_REGION: Final = "eu-west-1"
_ZONES: Final = ("a", "b")
_SECONDS: Final = 240.0
_COUNTED: Final = ("VPC", "zone", "subnet", "NAT gateway", "route table", "security group")
_MANAGER: Final = "pergola-up"


class Pattern(NamedTuple):
    """One way to get a network.

    Attributes:
        name: The name of the Infrastructure.
        title: The parts provided by the user.
        config: The InfrastructureConfig.
    """

    name: str
    title: str
    config: "JsonObject"

    @property
    def namespace(self) -> str:
        """The namespace of its Shoot."""
        return f"shoot--up--{self.name}"


async def show_aws(client: "Client", story: "Story", stack: AsyncExitStack) -> str:
    """Create one Infrastructure of each pattern, and count the parts of the first network.

    Args:
        stack: Ends the simulated AWS and the extension.

    Returns:
        A command that draws the first network.
    """
    from pergola.sandbox.aws.corrections import CorrectedAws
    from pergola.sandbox.aws.moto import moto

    aws = await stack.enter_async_context(CorrectedAws(stack.enter_context(moto())))
    await stack.enter_async_context(_extension(client, aws))
    async with aws.client(_REGION) as caller:
        patterns = await _patterns(caller)
        for pattern in patterns:
            await _request(client, pattern)
        for pattern in patterns:
            async with within(_SECONDS, f"Infrastructure {pattern.name}"):
                await _until_created(client, pattern)
            story.say(f"[green]ready[/]  {pattern.title}")
        first = patterns[0]
        story.say(f"Built for {first.name}: {await _parts(client, caller, first)}")
    place = f"infrastructure/{first.name} -n {first.namespace}"
    return f"pergola aws show {place} --endpoint-url {aws.url}"


async def _patterns(aws: "AwsClient") -> list[Pattern]:
    """Return the patterns, after creating the networks that users provide."""
    from pergola.sandbox.aws.world import Network, managed_config

    provided = await Network.complete(aws, zones=_ZONES)
    private = await Network.create(aws, zones=_ZONES)
    half = await Network.create(aws, zones=())
    own_group = await Network.create(aws, zones=())
    await own_group.add_gateway()
    firewalled = managed_config(_REGION, vpc=own_group.id)
    firewalled["networks"]["nodesSecurityGroupID"] = await own_group.security_group()
    group, other = await provided.security_group(), await private.security_group()
    return [
        Pattern(
            "created",
            "pattern 1: Pergola creates everything",
            managed_config(_REGION, zones=_ZONES),
        ),
        Pattern(
            "byo", "pattern 2: the user provides the network (BYO)", provided.config(group=group)
        ),
        Pattern(
            "private",
            "pattern 3: the user provides a network without internet",
            private.config(group=other),
        ),
        Pattern(
            "no-public",
            "pattern 4: Pergola creates private subnets in the user's VPC",
            managed_config(_REGION, vpc=half.id, public=False),
        ),
        Pattern("own-firewall", "pattern 5: the user provides VPC and security group", firewalled),
    ]


@asynccontextmanager
async def _extension(client: "Client", aws: "CorrectedAws") -> AsyncIterator[None]:
    """Run the extension in this process."""
    from pergola.extensions.lifecycle import Settings, extension_controller
    from pergola.providers.aws.actuator import AwsInfrastructure, AwsSettings
    from pergola.runtime.metrics import Metrics

    actuator = AwsInfrastructure(AwsSettings(endpoint_url=aws.url, poll_seconds=0.2))
    unit = extension_controller(client, actuator, Settings(), metrics=Metrics())
    running = asyncio.create_task(unit.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await actuator.close()


async def _request(client: "Client", pattern: Pattern) -> None:
    """Create the objects of a Shoot, and request its Infrastructure."""
    from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
    from pergola.api.marks import OPERATION, OPERATION_RECONCILE
    from pergola.extension_api.cluster import CLUSTER

    namespace = pattern.namespace
    reference = {"name": "cloudprovider", "namespace": namespace}
    spec = {
        "type": "aws",
        "region": _REGION,
        "secretRef": reference,
        "providerConfig": pattern.config,
    }
    shoot = {"metadata": {"name": pattern.name, "uid": f"uid-{pattern.name}"}, "spec": _SHOOT}
    for api_version, kind, metadata, fields in (
        ("v1", "Namespace", {"name": namespace}, {}),
        ("v1", "Secret", reference, {"data": _KEYS}),
        (CLUSTER.api_version, CLUSTER.kind, {"name": namespace}, {"spec": {"shoot": shoot}}),
        (
            INFRASTRUCTURE.api_version,
            INFRASTRUCTURE.kind,
            {
                "name": pattern.name,
                "namespace": namespace,
                "annotations": {OPERATION: OPERATION_RECONCILE},
            },
            {"spec": spec},
        ),
    ):
        obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
        await client.apply(obj, manager=_MANAGER, force=True)


_SHOOT: Final = {
    "networking": {"nodes": "10.180.0.0/16", "pods": "100.64.0.0/11", "services": "100.96.0.0/13"}
}
_KEYS: Final = {
    key: base64.b64encode(b"simulated").decode() for key in ("accessKeyID", "secretAccessKey")
}


async def _until_created(client: "Client", pattern: Pattern) -> None:
    """Wait until an Infrastructure is reconciled."""
    from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
    from pergola.api.objects import Key, map_at

    while True:
        obj = await client.get(INFRASTRUCTURE, Key(pattern.namespace, pattern.name))
        operation = map_at(obj, "status", "lastOperation")
        if operation.get("state") == "Succeeded":
            return
        if operation.get("state") == "Error":
            raise UpError(f"Infrastructure {pattern.name}: {operation.get('description')}")
        await asyncio.sleep(0.1)


async def _parts(client: "Client", aws: "AwsClient", pattern: Pattern) -> str:
    """Return the number of parts of each kind in a network in AWS."""
    from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
    from pergola.api.objects import Key
    from pergola.api.texts import counted
    from pergola.cli.aws.subject import Subject, observe_subject
    from pergola.extension_api.cluster import CLUSTER
    from pergola.providers.aws.show import things

    obj = await client.get(INFRASTRUCTURE, Key(pattern.namespace, pattern.name))
    cluster = await client.get(CLUSTER, Key("", pattern.namespace))
    work = await observe_subject(aws, Subject(obj, cluster, credentials=None))
    kinds = list(_kinds(things(work.desired, work.snapshot, work.state)))
    numbers = {kind: sum(each.startswith(kind) for each in kinds) for kind in _COUNTED}
    return ", ".join(counted(number, kind) for kind, number in numbers.items())


def _kinds(thing: "Thing") -> Iterator[str]:
    yield thing.kind
    for part in thing.parts:
        yield from _kinds(part)
