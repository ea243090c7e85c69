"""The Bastion actuator for Shoots in AWS (spec 30 §10.1).

    pergola extension run aws

All possible errors are found before anything is created.
"""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import ClassVar, Final

from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.cloud.aws import AwsClient, AwsClients, Place, reader
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extension_api.kinds import GROUP
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.providers.aws.actuator import AwsSettings, secret_of, settings_from
from pergola.providers.aws.bastion import firewall, host
from pergola.providers.aws.bastion.machine import machine_of
from pergola.providers.aws.bastion.site import Site, site_of, usable
from pergola.providers.aws.codes import explained
from pergola.providers.aws.warnings import warn
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("extension")

_POLLS_UNTIL_TERMINATED: Final = 2


class AwsBastion(Actuator):
    """Gives people SSH access through an instance in a public subnet.

    Args:
        settings: those of the environment if None.
    """

    kind = "Bastion"
    type = "aws"
    name = "provider-aws"
    registered_as = "pergola-aws"
    # The Infrastructure in its namespace determines where it can be placed.
    rules: ClassVar[Sequence[JsonObject]] = (
        {"apiGroups": [GROUP], "resources": ["infrastructures"], "verbs": ["list"]},
    )

    def __init__(self, settings: AwsSettings | None = None) -> None:
        self._settings = settings or settings_from(os.environ)
        self._clients = AwsClients(
            endpoint_url=self._settings.endpoint_url, retry=self._settings.retry
        )

    def measure(self, metrics: Metrics) -> None:
        """Count requests to AWS, within the quotas of the process."""
        self._clients.measure(metrics)

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Create the bastion, and wait until it is reachable.

        Raises:
            RequeueAfter: it has no public address yet.
            ExtensionError: there is no subnet for a bastion, or no machine type or image.
        """
        with explained():
            infrastructure = await self._infrastructure(context)
            if infrastructure is None:
                raise ExtensionError(f"there is no Infrastructure in {context.namespace} yet")
            site = _site(context, obj, infrastructure)
            sources, user_data = usable(site, obj)
            site = replace(site, sources=sources, user_data=user_data)
            profile = context.cluster.cloud_profile if context.cluster else None
            machine = machine_of(profile, _region(infrastructure))
            async with self._aws(context, infrastructure) as aws:
                group, advice = await firewall.open_for(aws, site)
                instance = await host.ensure_instance(
                    aws, site, machine, group, context.clock.now()
                )
        if advice:
            await warn(context.client, obj, [advice], context.clock)
        endpoint = host.endpoint_of(instance)
        if endpoint is None:
            waiting = f"instance {instance['InstanceId']} of the bastion has no public address yet"
            raise RequeueAfter(self._settings.poll_seconds, ExtensionError(waiting))
        return {"ingress": endpoint}

    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete the bastion, whichever of its parts still exist.

        Raises:
            RequeueAfter: its instance is not terminated yet.
            ExtensionError: a rule of the user still refers to it.
        """
        with explained():
            infrastructure = await self._infrastructure(context)
            if infrastructure is None:
                log.warning("no Infrastructure, so there is no bastion", bastion=str(Key.of(obj)))
                return None
            site = _site(context, obj, infrastructure)
            async with self._aws(context, infrastructure) as aws:
                await _remove(aws, site, self._settings.poll_seconds)
        return None

    async def force_delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Leave everything in AWS unchanged."""
        return None

    async def migrate(self, context: Context, obj: JsonObject) -> Status | None:
        """Leave everything in AWS unchanged: the instance is found again by its name."""
        return None

    async def close(self) -> None:
        """Close idle connections to AWS."""
        await self._clients.close()

    async def _infrastructure(self, context: Context) -> JsonObject | None:
        """Return the Infrastructure in the Bastion's namespace; a Shoot has one."""
        for each in await context.client.list(INFRASTRUCTURE, context.namespace):
            if map_at(each, "spec").get("type") == self.type:
                return each
        return None

    @asynccontextmanager
    async def _aws(self, context: Context, infrastructure: JsonObject) -> AsyncGenerator[AwsClient]:
        place = Place(secret_of(infrastructure), _region(infrastructure))
        async with self._clients.use(reader(context.client), place, context.clock.now()) as aws:
            yield aws


async def _remove(aws: AwsClient, site: Site, poll_seconds: float) -> None:
    group = firewall.own_group(site, await firewall.groups_of(aws, site))
    if group is not None:
        await firewall.close_for(aws, site, group)
    instances = await host.instances_of(aws, site)
    await host.terminate(aws, instances)
    if instances:
        names = ", ".join(str(instance["InstanceId"]) for instance in instances)
        waiting = ExtensionError(f"instance {names} of the bastion is being terminated")
        raise RequeueAfter(_POLLS_UNTIL_TERMINATED * poll_seconds, waiting)
    if group is not None:
        await firewall.delete_group(aws, group)


def _site(context: Context, obj: JsonObject, infrastructure: JsonObject) -> Site:
    shoot = context.cluster.shoot if context.cluster else None
    return site_of(obj, infrastructure, shoot.ip_families if shoot else ())


def _region(infrastructure: JsonObject) -> str:
    return str(map_at(infrastructure, "spec").get("region") or "")
