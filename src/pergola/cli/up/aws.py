"""The chapter of `pergola up` about infrastructure in AWS, one of each pattern, simulated by moto.

moto is in the extra `testing`; without it, this chapter is skipped.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.markup import escape

from pergola.cli.up.story import UpError

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.up.story import Story
    from pergola.cloud.aws import AwsClient
    from pergola.kube.client import Client
    from pergola.testing.aws.corrections import CorrectedAws

_REGION: Final = "eu-west-1"
_ZONES: Final = ("a", "b")
_SECONDS: Final = 120.0
_MANAGER: Final = "pergola-up"


class Pattern(NamedTuple):
    """One way to get a network.

    Attributes:
        name: The name of the Infrastructure.
        title: The parts that the user provides.
        config: The InfrastructureConfig.
    """

    name: str
    title: str
    config: "JsonObject"

    @property
    def namespace(self) -> str:
        """The namespace of its Shoot."""
        return f"shoot--up--{self.name}"


async def show_aws(client: "Client", story: "Story") -> None:
    """Create one Infrastructure of each pattern, and draw the first network."""
    if find_spec("moto") is None:
        story.say(
            escape("skipped because it needs pergola[testing]: pip install 'pergola[testing]'")
        )
        return
    from pergola.testing.aws.corrections import CorrectedAws
    from pergola.testing.aws.moto import moto

    with moto() as server:
        async with CorrectedAws(server) as aws, aws.client(_REGION) as caller:
            patterns = await _patterns(caller)
            async with _extension(client, aws):
                for pattern in patterns:
                    await _request(client, pattern)
                try:
                    async with asyncio.timeout(_SECONDS):
                        for pattern in patterns:
                            await _until_created(client, pattern)
                            story.say(f"[green]ready[/]  {pattern.title}")
                except TimeoutError:
                    raise UpError(f"infrastructure took longer than {_SECONDS:.0f} s") from None
            await _draw(client, caller, patterns[0], story)


async def _patterns(aws: "AwsClient") -> list[Pattern]:
    """Return the patterns, after creating the networks that users provide."""
    from pergola.testing.aws.world import Network, managed_config

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
            "pattern 3: the user provides a network without internet access",
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
    """Wait until an Infrastructure was reconciled."""
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


async def _draw(client: "Client", aws: "AwsClient", pattern: Pattern, story: "Story") -> None:
    """Print a network as `pergola aws show` does."""
    from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
    from pergola.api.objects import Key
    from pergola.cli.aws.subject import Subject, observe_subject
    from pergola.extension_api.cluster import CLUSTER
    from pergola.providers.aws.show import things, tree

    obj = await client.get(INFRASTRUCTURE, Key(pattern.namespace, pattern.name))
    cluster = await client.get(CLUSTER, Key("", pattern.namespace))
    work = await observe_subject(aws, Subject(obj, cluster, credentials=None))
    lines = tree(things(work.wanted, work.snapshot, work.state)).splitlines()
    story.say(f"The network of {pattern.title.partition(':')[0]}:")
    for line in lines:
        story.say(escape(line))
    story.hint(f"pergola aws show --name {pattern.name} -n {pattern.namespace} -o svg")
