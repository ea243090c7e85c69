"""Our side of a comparison: every object of our Garden."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pergola.api.kinds import SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at, name_of
from pergola.api.operator_v1alpha1 import EXTENSION, garden_from
from pergola.garden.components.component import Component, Target
from pergola.garden.components.etcds.backups import expected_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.etcd_objects import ETCD, kept
from pergola.operator.compare.foreign import why_foreign
from pergola.operator.compare.placed import Placed
from pergola.operator.compare.recorded import Recorded
from pergola.operator.reconcile.placeholders import placeholder, with_placeholders
from pergola.operator.run.deploy import bundle_of
from pergola.operator.run.observed import Template
from pergola.operator.run.references import references_of

_API_SERVER: Key = Key(NAMESPACE, "gardener-apiserver")
_WILDCARD: tuple[str, str] = ("gardener.cloud/role", "garden-cert")


def landscape_of(
    garden: JsonObject, recorded: Recorded, template: Template, components: Iterable[Component]
) -> Landscape:
    """Return the landscape of a Garden in a dump, with placeholders for credentials.

    Raises:
        Malformed: The Garden has values of wrong types.
    """
    known = {(str(obj.get("kind")), Key.of(obj)): obj for obj in recorded.all}
    references = {
        (each.kind, each.key): _readable(known[each.kind, each.key], recorded)
        for each in references_of(garden)
        if (each.kind, each.key) in known
    }
    wildcards = [obj for obj in recorded.all if _WILDCARD in labels_of(obj).items()]
    service = known.get((SERVICE.kind, _API_SERVER), {})
    extensions = (obj for obj in recorded.all if GroupVersionKind.of(obj) == EXTENSION)
    bare = replace(template(garden_from(garden)), extensions=tuple(sorted(extensions, key=name_of)))
    complete = replace(
        bare,
        references=references,
        backup_secret=expected_secret(bare),
        wildcard_certificate=_readable(wildcards[0], recorded) if wildcards else None,
        gardener_api_server_address=str(map_at(service, "spec").get("clusterIP") or ""),
    )
    return with_placeholders(complete, components)


def _readable(obj: JsonObject, recorded: Recorded) -> JsonObject:
    """Return an object with placeholders for values that a dump omits."""
    if recorded.has_texts:
        return obj
    return placeholder(GroupVersionKind.of(obj).kind, Key.of(obj), map_at(obj, "data"))


def rendered(
    landscape: Landscape, components: Iterable[Component], live: Sequence[JsonObject] = ()
) -> list[Placed]:
    """Return what the components render, including the credentials that they need.

    Takes about a second of CPU time.

    Args:
        live: Objects of the runtime cluster: existing Etcds keep their capacity and schedules.
    """
    found = [*_credentials(landscape)]
    for component in components:
        if component.absent(landscape) is None:
            found += _of(component, landscape)
    etcds = {Key.of(obj): obj for obj in live if GroupVersionKind.of(obj) == ETCD}
    return [_kept(each, etcds) for each in found if why_foreign(each) is None]


def _kept(placed: Placed, etcds: Mapping[Key, JsonObject]) -> Placed:
    if GroupVersionKind.of(placed.obj) != ETCD:
        return placed
    return placed._replace(obj=kept(placed.obj, etcds.get(Key.of(placed.obj))))


def _credentials(landscape: Landscape) -> Iterator[Placed]:
    for generated in landscape.credentials.generated.values():
        for secret in (generated.current, generated.old, generated.bundle):
            if secret is not None:
                yield Placed(Target.RUNTIME, "", "credentials", secret.obj)


def _of(component: Component, landscape: Landscape) -> Iterator[Placed]:
    objects = component.objects(landscape)
    for obj in objects.direct:
        yield Placed(Target.RUNTIME, "", component.name, obj)
    for managed in objects.managed:
        for obj in managed.objects:
            yield Placed(managed.target, managed.name, component.name, obj)
        bundle = bundle_of(managed)
        for obj in (bundle.managed_resource, *bundle.secrets):
            yield Placed(Target.RUNTIME, "", component.name, obj)
