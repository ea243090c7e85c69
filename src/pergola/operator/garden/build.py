"""Building a landscape: the only step that reads the runtime cluster (design §8)."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from pergola.api.kinds import CONFIG_MAP, SECRET, SERVICE
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.objects import JsonObject, Key, labels_of, map_at, name_of
from pergola.api.operator_v1alpha1 import EXTENSION, Garden, garden_from
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.kube.selectors import format_selector
from pergola.manifests import KUBE_SYSTEM
from pergola.operator.components.authorities import authorities
from pergola.operator.components.component import Component
from pergola.operator.components.gardener_apiserver.component import GARDENER_APISERVER
from pergola.operator.garden.credentials import Credential, Credentials
from pergola.operator.garden.errors import OperatorError, ReferencesMissing
from pergola.operator.garden.landscape import NAMESPACE, Landscape
from pergola.operator.garden.references import Reference, references_of
from pergola.operator.garden.rotation_times import rotation_times
from pergola.runtime.clock import Clock
from pergola.secrets_manager import SecretsManager

IDENTITY: Final = "gardener-operator"
"""The identity of the operator's secrets manager."""

_KINDS: Final = {kind.kind: kind for kind in (SECRET, CONFIG_MAP)}
_WILDCARD: Final = format_selector({"matchLabels": {"gardener.cloud/role": "garden-cert"}})

Template = Callable[[Garden], Landscape]
"""Returns a landscape of a Garden with what is the same for all: images, settings, versions."""


@dataclass(frozen=True, slots=True)
class Built:
    """A landscape, and the secrets manager that generated its credentials.

    The secrets manager deletes what this run did not use, once the run has succeeded.
    """

    landscape: Landscape
    secrets: SecretsManager


async def build(
    client: Client,
    garden: JsonObject,
    template: Template,
    components: Iterable[Component],
    clock: Clock,
) -> Built:
    """Read what a Garden refers to, and generate all credentials of its components.

    Raises:
        Malformed: The Garden has values of wrong types.
        ReferencesMissing: The Garden names objects that do not exist.
        OperatorError: The cluster has several wildcard certificates.
        SecretsManagerError: A credential cannot be generated or adopted.
        KubeError: The API server refused, or did not answer.
    """
    bare, references, wildcard, address = await asyncio.gather(
        bare_landscape(client, garden, template),
        _read_references(client, references_of(garden)),
        _wildcard_certificate(client),
        _address(client),
    )
    landscape = replace(
        bare,
        references=references,
        wildcard_certificate=wildcard,
        gardener_api_server_address=address,
    )
    secrets = await open_secrets(client, landscape, clock)
    return Built(await _with_credentials(landscape, secrets, components), secrets)


async def bare_landscape(client: Client, garden: JsonObject, template: Template) -> Landscape:
    """Return the landscape of a Garden without what it refers to, and without credentials.

    Raises:
        Malformed: The Garden has values of wrong types.
        KubeError: The API server refused, or did not answer.
    """
    system, extensions = await asyncio.gather(
        client.find(NAMESPACE_KIND, Key("", KUBE_SYSTEM), metadata_only=True), _extensions(client)
    )
    is_self_hosted = labels_of(system or {}).get("gardener.cloud/role") == "shoot"
    bare = template(garden_from(garden))
    return replace(bare, extensions=extensions, is_self_hosted=is_self_hosted)


async def open_secrets(client: Client, landscape: Landscape, clock: Clock) -> SecretsManager:
    """Return the secrets manager for one run.

    Raises:
        SecretsManagerError: A managed Secret cannot be read.
        KubeError: The API server refused, or did not answer.
    """
    times = rotation_times(landscape.rotation)
    return await SecretsManager.open(client, NAMESPACE, IDENTITY, clock=clock, rotation_times=times)


async def _with_credentials(
    landscape: Landscape, secrets: SecretsManager, components: Iterable[Component]
) -> Landscape:
    """Generate the authorities, then the credentials of one component after the other.

    A component may need what an earlier one generated, such as a bundle in a kubeconfig.
    """
    rotation = landscape.rotation.certificate_authorities
    is_completing = rotation is not None and rotation.phase == "Completing"
    await _generate(secrets, authorities(is_completing=is_completing))
    for component in components:
        landscape = landscape.with_credentials(Credentials(dict(secrets.generated)))
        if component.absent(landscape) is None:
            await _generate(secrets, component.credentials(landscape))
    return landscape.with_credentials(Credentials(dict(secrets.generated)))


async def _generate(secrets: SecretsManager, wanted: Iterable[Credential]) -> None:
    """Generate credentials that do not depend on each other; keys take most of the time."""
    async with asyncio.TaskGroup() as group:
        for credential in wanted:
            group.create_task(secrets.generate(credential.config, credential.options))


async def _read_references(
    client: Client, references: Iterable[Reference]
) -> dict[tuple[str, Key], JsonObject]:
    """Return the objects by kind and key; report all that are missing together."""
    named = list(references)
    wanted = {(each.kind, each.key) for each in named}
    objects = await asyncio.gather(*(client.find(_KINDS[kind], key) for kind, key in wanted))
    found = {
        identity: obj for identity, obj in zip(wanted, objects, strict=True) if obj is not None
    }
    missing = [each for each in named if (each.kind, each.key) not in found]
    if missing:
        raise ReferencesMissing([f"{each.kind} {each.key} ({each.field})" for each in missing])
    return found


async def _address(client: Client) -> str:
    """Return the cluster IP of the Service of gardener-apiserver; empty if there is none yet."""
    service = await client.find(SERVICE, Key(NAMESPACE, GARDENER_APISERVER.name))
    return cluster_ip(service)


def cluster_ip(service: JsonObject | None) -> str:
    """Return the cluster IP of a Service; empty if there is none."""
    return str(map_at(service or {}, "spec").get("clusterIP") or "")


async def _wildcard_certificate(client: Client) -> JsonObject | None:
    found = await client.list(SECRET, NAMESPACE, labels=_WILDCARD)
    if len(found) > 1:
        names = ", ".join(sorted(str(Key.of(secret)) for secret in found))
        raise OperatorError(
            f"there are {len(found)} Secrets with the label gardener.cloud/role=garden-cert "
            f"({names}), but a garden has one wildcard certificate at most: remove the label of "
            "the others"
        )
    return found[0] if found else None


async def _extensions(client: Client) -> tuple[JsonObject, ...]:
    """Return the operator's Extensions by name; none in a cluster that does not serve the kind."""
    try:
        return tuple(sorted(await client.list(EXTENSION), key=name_of))
    except UnknownKind:
        return ()
