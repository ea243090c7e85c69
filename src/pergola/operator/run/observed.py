"""Observing a landscape: the parts of a Garden in the runtime cluster, without its credentials.

Nothing is written, and objects that the Garden names may be missing.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.objects import JsonObject, Key, labels_of, name_of
from pergola.api.operator_v1alpha1 import EXTENSION, Garden, garden_from
from pergola.controllers.references import Reference
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.kube.selectors import format_selector
from pergola.manifests import KUBE_SYSTEM
from pergola.operator.run.references import references_of
from pergola.runtime.task_group import gathered, together

_KINDS: Final = {kind.kind: kind for kind in (SECRET, CONFIG_MAP)}
WILDCARD: Final = format_selector({"matchLabels": {"gardener.cloud/role": "garden-cert"}})
"""Selects the Secret with the certificate for all hosts of a garden."""

Template = Callable[[Garden], Landscape]
"""Returns a landscape of a Garden with the common parts: images, settings, versions."""


class Observed(NamedTuple):
    """A landscape without credentials.

    Attributes:
        missing: Objects that the Garden names but the cluster lacks.
    """

    landscape: Landscape
    missing: tuple[Reference, ...]


async def observe(client: Client, garden: JsonObject, template: Template) -> Observed:
    """Read the objects that a Garden names, and what else all components depend on.

    Raises:
        Malformed: The Garden has values of wrong types.
        OperatorError: The cluster has several wildcard certificates.
        KubeError: The API server refused, or did not answer.
    """
    named = references_of(garden)
    bare, references, wildcard = await together(
        bare_landscape(client, garden, template),
        _read_references(client, named),
        _wildcard_certificate(client),
    )
    landscape = replace(bare, references=references, wildcard_certificate=wildcard)
    missing = tuple(each for each in named if (each.kind, each.key) not in references)
    return Observed(landscape, missing)


async def bare_landscape(client: Client, garden: JsonObject, template: Template) -> Landscape:
    """Return the landscape of a Garden without named objects and credentials.

    Raises:
        Malformed: The Garden has values of wrong types.
        KubeError: The API server refused, or did not answer.
    """
    system, extensions = await together(
        client.find(NAMESPACE_KIND, Key("", KUBE_SYSTEM), metadata_only=True), _extensions(client)
    )
    is_self_hosted = labels_of(system or {}).get("gardener.cloud/role") == "shoot"
    bare = template(garden_from(garden))
    return replace(bare, extensions=extensions, is_self_hosted=is_self_hosted)


async def _read_references(
    client: Client, references: Iterable[Reference]
) -> dict[tuple[str, Key], JsonObject]:
    """Return the objects that exist, by kind and key."""
    desired = {(each.kind, each.key) for each in references}
    objects = await gathered(client.find(_KINDS[kind], key) for kind, key in desired)
    return {
        identity: obj for identity, obj in zip(desired, objects, strict=True) if obj is not None
    }


async def _wildcard_certificate(client: Client) -> JsonObject | None:
    found = await client.list(SECRET, NAMESPACE, labels=WILDCARD)
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
