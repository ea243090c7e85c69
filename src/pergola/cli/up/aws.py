"""What `pergola up` shows of infrastructure in AWS: one of each pattern, on an AWS that moto plays.

moto is for development only: where it is not installed, that is said and nothing is shown.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from pergola.cli.up.tour import TourError

if TYPE_CHECKING:
    from rich.console import Console

    from pergola.api.objects import JsonObject
    from pergola.cloud.aws import AwsClient
    from pergola.kube.client import Client
    from pergola.testing.aws.corrections import CorrectedAws

_REGION: Final = "eu-west-1"
_ZONES: Final = ("a", "b")
_SECONDS: Final = 120.0
_MANAGER: Final = "pergola-up"


class Pattern(NamedTuple):
    """One way to have a network.

    Attributes:
        name: of its Infrastructure.
        title: whose network it is.
        config: the InfrastructureConfig.
    """

    name: str
    title: str
    config: "JsonObject"

    @property
    def namespace(self) -> str:
        """Of its Shoot."""
        return f"shoot--up--{self.name}"


async def show_aws(client: "Client", console: "Console") -> None:
    """Has one Infrastructure of each pattern made, with its progress, and draws the networks."""
    from pergola.testing.aws.corrections import CorrectedAws
    from pergola.testing.aws.moto import moto

    if find_spec("moto") is None:
        console.print("\nInfrastructure in AWS is not shown: the package moto is not installed.")
        return
    console.print("\nInfrastructure in AWS (moto plays AWS), one of each pattern:")
    with moto() as server:
        async with CorrectedAws(server) as aws, aws.client(_REGION) as caller:
            patterns = await _patterns(caller)
            async with _extension(client, aws):
                for pattern in patterns:
                    await _ask(client, pattern)
                try:
                    async with asyncio.timeout(_SECONDS):
                        for pattern in patterns:
                            await _follow(client, pattern, console)
                except TimeoutError:
                    raise TourError(f"infrastructure took longer than {_SECONDS:.0f} s") from None
            for pattern in patterns:
                await _draw(client, caller, pattern, console)


async def _patterns(aws: "AwsClient") -> list[Pattern]:
    """The patterns, with the networks that their users bring."""
    from pergola.testing.aws.world import Network, managed_config

    brought = await Network.complete(aws, zones=_ZONES)
    private = await Network.create(aws, zones=_ZONES)
    half = await Network.create(aws, zones=())
    own_group = await Network.create(aws, zones=())
    await own_group.add_gateway()
    firewalled = managed_config(_REGION, vpc=own_group.id)
    firewalled["networks"]["nodesSecurityGroupID"] = await own_group.security_group()
    group, other = await brought.security_group(), await private.security_group()
    return [
        Pattern("created", "1: everything is created", managed_config(_REGION, zones=_ZONES)),
        Pattern("brought", "2: the network is brought", brought.config(group=group)),
        Pattern(
            "private", "3: brought, without a way to the internet", private.config(group=other)
        ),
        Pattern(
            "no-public",
            "4: created in a VPC that is brought, without public subnets",
            managed_config(_REGION, vpc=half.id, public=False),
        ),
        Pattern("own-firewall", "5: created, with a security group that is brought", firewalled),
    ]


@asynccontextmanager
async def _extension(client: "Client", aws: "CorrectedAws") -> AsyncIterator[None]:
    """The extension at work in this process."""
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


async def _ask(client: "Client", pattern: Pattern) -> None:
    """What a caller creates for a Shoot, and what asks the extension."""
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
    key: base64.b64encode(b"anybody").decode() for key in ("accessKeyID", "secretAccessKey")
}


async def _follow(client: "Client", pattern: Pattern, console: "Console") -> None:
    """Prints the progress of a flow until it has ended; it may have begun before."""
    from rich.markup import escape

    from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
    from pergola.api.objects import Key, map_at

    console.print(f"\n  [bold]Pattern {pattern.title}[/]")
    told = ""
    while True:
        obj = await client.get(INFRASTRUCTURE, Key(pattern.namespace, pattern.name))
        operation = map_at(obj, "status", "lastOperation")
        state = operation.get("state")
        text = f"{operation.get('progress', 0):3d}% {operation.get('description', 'asked for')}"
        if text != told:
            console.print(f"    {escape(text)}", soft_wrap=True)
            told = text
        if state == "Succeeded":
            return
        if state == "Error":
            raise TourError(f"Infrastructure {pattern.name}: {operation.get('description')}")
        await asyncio.sleep(0.1)


async def _draw(client: "Client", aws: "AwsClient", pattern: Pattern, console: "Console") -> None:
    """Prints a network as `pergola aws show` does."""
    from rich.markup import escape

    from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
    from pergola.api.objects import Key
    from pergola.cli.aws.asked import Asked, look
    from pergola.extension_api.cluster import CLUSTER
    from pergola.providers.aws.show import things, tree

    obj = await client.get(INFRASTRUCTURE, Key(pattern.namespace, pattern.name))
    cluster = await client.get(CLUSTER, Key("", pattern.namespace))
    work = await look(aws, Asked(obj, cluster, credentials=None))
    seen = things(work.wanted, work.snapshot, work.state)
    console.print(f"\n[bold]Pattern {pattern.title}[/]")
    console.print(escape(tree(seen)), soft_wrap=True, end="")
