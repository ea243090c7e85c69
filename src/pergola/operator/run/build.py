"""Building a landscape: observing the runtime cluster, and generating credentials (design §8)."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from pergola.api.objects import JsonObject
from pergola.garden.components.authorities import authorities
from pergola.garden.components.component import Component
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential, Credentials
from pergola.garden.landscape.errors import ReferencesMissing, ReferencesUnusable
from pergola.garden.landscape.lost_secrets import given_up_in
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


@dataclass(frozen=True, slots=True)
class Built:
    """A landscape, and the secrets manager that generated its credentials.

    The secrets manager deletes the Secrets that this run did not use, once the run has succeeded.
    """

    landscape: Landscape
    secrets: SecretsManager


async def build(
    client: Client,
    garden: JsonObject,
    template: Template,
    components: Iterable[Component],
    clock: Clock,
    *,
    settle: Settle | None = None,
) -> Built:
    """Read the objects that a Garden names; generate authorities and credentials of components.

    Args:
        settle: Called after the generation, even if it failed.

    Raises:
        Malformed: The Garden has values of wrong types.
        ReferencesMissing: The Garden names objects that do not exist.
        ReferencesUnusable: It names objects without the required content.
        OperatorError: The cluster has several wildcard certificates.
        SecretsManagerError: A credential cannot be generated or adopted.
        KubeError: The API server refused, or did not answer.
        Failures: Several credentials failed with such errors.
    """
    observed = await observe(client, garden, template)
    if observed.missing:
        missing = [f"{each.kind} {each.key} ({each.field})" for each in observed.missing]
        raise ReferencesMissing(missing)
    unusable = content_problems(references_of(garden), observed.landscape.references)
    if unusable:
        raise ReferencesUnusable(unusable)
    secrets = await open_secrets(client, observed.landscape, clock)
    try:
        return Built(await with_credentials(observed.landscape, secrets, components), secrets)
    finally:
        if settle is not None:
            await settle(secrets)


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


async def with_credentials(
    landscape: Landscape, secrets: SecretsManager, components: Iterable[Component]
) -> Landscape:
    """Return the landscape with authorities and component credentials, generating missing ones.

    Raises:
        SecretsManagerError: A credential cannot be generated or adopted.
        KubeError: The API server refused, or did not answer.
        Failures: Several credentials failed with such errors.
    """
    rotation = landscape.rotation.certificate_authorities
    phase = rotation.phase if rotation else ""
    await _generate(secrets, authorities(phase=phase, given_up=given_up_in(landscape)))
    return await add_credentials(landscape, secrets, components)


async def add_credentials(
    landscape: Landscape, secrets: SecretsManager, components: Iterable[Component]
) -> Landscape:
    """Return the landscape with the credentials of more components, one after another.

    A component may need the output of an earlier one, such as a bundle in a kubeconfig.

    Raises:
        SecretsManagerError: A credential cannot be generated or adopted.
        KubeError: The API server refused, or did not answer.
        Failures: Several credentials failed with such errors.
    """
    for component in components:
        landscape = landscape.with_credentials(Credentials(dict(secrets.generated)))
        if component.absent(landscape) is None:
            await _generate(secrets, component.credentials(landscape))
    return landscape.with_credentials(Credentials(dict(secrets.generated)))


async def _generate(secrets: SecretsManager, wanted: Iterable[Credential]) -> None:
    """Generate credentials that do not depend on each other; keys take most of the time."""
    try:
        async with TaskGroup() as group:
            for credential in wanted:
                group.create_task(secrets.generate(credential.config, credential.options))
    except Failures as failed:
        raise only_error(failed) from None
