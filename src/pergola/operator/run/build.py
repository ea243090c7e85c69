"""Building a landscape from the runtime cluster, and generating credentials (design §8)."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from pergola.api.objects import JsonObject
from pergola.garden.components.authorities import authorities
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.garden.landscape.errors import ReferencesMissing, ReferencesUnusable
from pergola.garden.landscape.lost_secrets import given_up_in
from pergola.garden.landscape.phases import phase_of
from pergola.kube.client import Client
from pergola.operator.run.observed import Template, observe
from pergola.operator.run.reference_contents import content_problems
from pergola.operator.run.references import references_of
from pergola.operator.run.rotation_times import rotation_times
from pergola.runtime.clock import Clock
from pergola.runtime.failures import Failures, only_error
from pergola.runtime.task_group import TaskGroup
from pergola.secrets_manager import SecretsManager
from pergola.secrets_manager.manager import Generate, new_data

IDENTITY: Final = "gardener-operator"
"""The identity of the operator's secrets manager."""


Settle: TypeAlias = Callable[[SecretsManager], Awaitable[None]]
"""Reports what happened to lost Secrets."""


async def settle_nothing(secrets: SecretsManager) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Built:
    """A landscape, and the secrets manager that generates its credentials.

    The secrets manager deletes the Secrets that this run did not use, once the run has succeeded.

    Attributes:
        settle: Called after each generation.
    """

    landscape: Landscape
    secrets: SecretsManager
    settle: Settle = settle_nothing

    async def generate(self, credentials: Iterable[Credential]) -> None:
        """Generate credentials that do not depend on each other; keys take most of the time.

        Raises:
            SecretsManagerError: A credential cannot be generated or adopted.
            KubeError: The API server refused, or did not answer.
            Failures: Several credentials failed with such errors.
        """
        try:
            async with TaskGroup() as group:
                for credential in credentials:
                    group.create_task(self.secrets.generate(credential.config, credential.options))
        except Failures as failed:
            raise only_error(failed) from None
        finally:
            await self.settle(self.secrets)

    async def generate_authorities(self) -> None:
        """Generate the authorities, which sign credentials; raises as `generate` does."""
        phase = phase_of(self.landscape.rotation.certificate_authorities)
        await self.generate(authorities(phase=phase, given_up=given_up_in(self.landscape)))


async def build(
    client: Client,
    garden: JsonObject,
    template: Template,
    clock: Clock,
    settle: Settle = settle_nothing,
) -> Built:
    """Read the objects that a Garden names, and list its credentials.

    Raises:
        Malformed: The Garden has values of wrong types.
        ReferencesMissing: The Garden names objects that do not exist.
        ReferencesUnusable: It names objects without the required content.
        OperatorError: The cluster has several wildcard certificates.
        SecretsManagerError: A managed Secret cannot be read.
        KubeError: The API server refused, or did not answer.
    """
    observed = await observe(client, garden, template)
    if observed.missing:
        missing = [f"{each.kind} {each.key} ({each.field})" for each in observed.missing]
        raise ReferencesMissing(missing)
    unusable = content_problems(references_of(garden), observed.landscape.references)
    if unusable:
        raise ReferencesUnusable(unusable)
    secrets = await open_secrets(client, observed.landscape, clock)
    return Built(observed.landscape, secrets, settle)


async def open_secrets(
    client: Client, landscape: Landscape, clock: Clock, generate: Generate = new_data
) -> SecretsManager:
    """Return the secrets manager for one run.

    Args:
        generate: See `SecretsManager`.

    Raises:
        SecretsManagerError: A managed Secret cannot be read.
        KubeError: The API server refused, or did not answer.
    """
    times = rotation_times(landscape.rotation)
    return await SecretsManager.open(
        client, NAMESPACE, IDENTITY, clock=clock, rotation_times=times, generate=generate
    )
