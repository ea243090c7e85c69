"""The Extensions of the garden, and the time of their handling (spec 21 §15.3)."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pergola.api.durations import DurationError, parse_duration
from pergola.api.objects import JsonObject, map_at, without_nulls
from pergola.extension_api.kinds import EXTENSION
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.served import Need, auto_enabled, resource_for
from pergola.operator.reconcile.extension_resources.inputs import garden_resource

BEFORE: Final = "BeforeKubeAPIServer"
AFTER: Final = "AfterKubeAPIServer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GardenExtension:
    """An Extension of the garden.

    Attributes:
        obj: The extension resource.
        reconcile: When it is deployed: `BeforeKubeAPIServer`, `AfterKubeAPIServer` or
            `AfterWorker`. A garden has no workers, so the last two are equivalent.
        timeout: Seconds until waiting for it fails; None for the kind's default.
    """

    obj: JsonObject
    reconcile: str
    timeout: float | None

    @property
    def is_before(self) -> bool:
        """Whether it is deployed before the kube-apiserver."""
        return self.reconcile == BEFORE


def extensions(landscape: Landscape) -> tuple[GardenExtension, ...]:
    """Return the Extensions that the Garden names, and those enabled for every garden, by type."""
    configs: dict[str, JsonObject | None] = dict.fromkeys(auto_enabled(landscape.extensions))
    for named in landscape.garden.spec.extensions:
        configs[named.type] = named.provider_config
    return tuple(_extension(landscape, *each) for each in sorted(configs.items()))


def none_before(landscape: Landscape) -> str | None:
    """Return why no Extension is handled before the kube-apiserver, or None if one is."""
    if any(each.is_before for each in extensions(landscape)):
        return None
    return "no extension is handled before the kube-apiserver"


def none_after(landscape: Landscape) -> str | None:
    """Return why no Extension is handled after the kube-apiserver, or None if one is."""
    if any(not each.is_before for each in extensions(landscape)):
        return None
    return "no extension is handled after the kube-apiserver"


def deletion_of(obj: JsonObject, registered: Iterable[JsonObject]) -> str:
    """Return when a live Extension is deleted: before the kube-apiserver, or after it."""
    served = resource_for(Need(EXTENSION.kind, _type_of(obj)), registered)
    return str(map_at(served, "lifecycle").get("delete") or BEFORE)


def _extension(
    landscape: Landscape, extension_type: str, config: JsonObject | None
) -> GardenExtension:
    served = resource_for(Need(EXTENSION.kind, extension_type), landscape.extensions)
    spec: JsonObject = {"type": extension_type}
    if config is not None:
        spec["providerConfig"] = without_nulls(config)
    name = f"garden-{extension_type}"
    return GardenExtension(
        obj=garden_resource(EXTENSION, name, spec, inputs=_inputs(landscape)),
        reconcile=str(map_at(served, "lifecycle").get("reconcile") or AFTER),
        timeout=_timeout(served),
    )


def _inputs(landscape: Landscape) -> Iterable[JsonObject]:
    """Return the Secrets and ConfigMaps that the configurations of extensions may refer to."""
    for named in landscape.garden.spec.resources:
        reference = named.resource_ref
        for (kind, key), obj in landscape.references.items():
            if (kind, key.name) == (reference.kind, reference.name):
                yield obj


def _timeout(served: JsonObject) -> float | None:
    text = served.get("reconcileTimeout")
    with suppress(DurationError):
        return parse_duration(text).total_seconds() if isinstance(text, str) else None
    return None


def _type_of(obj: JsonObject) -> str:
    return str(map_at(obj, "spec").get("type") or "")
