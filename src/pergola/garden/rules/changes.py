"""Rules about changes of a Garden (spec 21 §7.3)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import IMMUTABLE, Cause, forbidden, invalid
from pergola.api.ip_ranges import is_network
from pergola.api.known.kubernetes_versions import SUPPORTED, Version, parse_version
from pergola.api.objects import JsonValue
from pergola.api.operator_v1alpha1 import Garden, GardenSpec
from pergola.api.operator_v1alpha1.etcd import Backup, Etcd, EtcdEvents
from pergola.api.operator_v1alpha1.facets import DnsDomain
from pergola.garden.rules.encryption_changes import check_encryption_changes
from pergola.garden.rules.runtime_cluster import ranges_of

_RUNTIME: Final = "spec.runtimeCluster"
_VIRTUAL: Final = "spec.virtualCluster"


def check_changes(new: Garden, old: Garden) -> Iterator[Cause]:
    """Yield the findings about the changes between two versions of a Garden."""
    yield from _runtime_cluster(new.spec, old.spec)
    yield from _virtual_cluster(new.spec, old.spec)
    yield from _gardener(new.spec, old.spec)
    yield from check_encryption_changes(new, old)


def _runtime_cluster(new: GardenSpec, old: GardenSpec) -> Iterator[Cause]:
    now, before = new.runtime_cluster, old.runtime_cluster
    domains = f"{_RUNTIME}.ingress.domains"
    yield from _first_domain(now.ingress.domains, before.ingress.domains, domains)
    networking = f"{_RUNTIME}.networking"
    ranges = ranges_of(now.networking)
    for field, earlier in ranges_of(before.networking).items():
        yield from _append_only(ranges[field], earlier, f"{networking}.{field}")
    families: list[JsonValue] = [*now.networking.ip_families]
    yield from _same(families, [*before.networking.ip_families], f"{networking}.ipFamilies")


def _virtual_cluster(new: GardenSpec, old: GardenSpec) -> Iterator[Cause]:
    now, before = new.virtual_cluster, old.virtual_cluster
    yield from _first_domain(now.dns.domains, before.dns.domains, f"{_VIRTUAL}.dns.domains")
    yield from _etcd(now.etcd, before.etcd, f"{_VIRTUAL}.etcd")
    was_available = before.control_plane.high_availability is not None
    if was_available and now.control_plane.high_availability is None:
        yield invalid(f"{_VIRTUAL}.controlPlane.highAvailability", None, IMMUTABLE)
    version, earlier = now.kubernetes.version, before.kubernetes.version
    yield from _version(version, earlier, f"{_VIRTUAL}.kubernetes.version")
    services = f"{_VIRTUAL}.networking.services"
    yield from _append_only(now.networking.services, before.networking.services, services)


def _etcd(new: Etcd, old: Etcd, path: str) -> Iterator[Cause]:
    before, now = old.main.backup, new.main.backup
    if before is not None:
        at = f"{path}.main.backup"
        if now is None:
            yield forbidden(at, "backup must not be deactivated if it was set before")
        else:
            yield from _backup(now, before, at)
    parts: tuple[tuple[str, EtcdEvents, EtcdEvents], ...] = (
        ("main", new.main, old.main),
        ("events", new.events, old.events),
    )
    for name, part, earlier in parts:
        if part.storage is not None and earlier.storage is not None:
            at = f"{path}.{name}.storage.className"
            yield from _same(part.storage.class_name, earlier.storage.class_name, at)


def _backup(new: Backup, old: Backup, path: str) -> Iterator[Cause]:
    yield from _same(new.provider, old.provider, f"{path}.provider")
    yield from _same(new.bucket_name, old.bucket_name, f"{path}.bucketName")
    yield from _same(new.region, old.region, f"{path}.region")


def _gardener(new: GardenSpec, old: GardenSpec) -> Iterator[Cause]:
    now, before = new.virtual_cluster.gardener, old.virtual_cluster.gardener
    path = f"{_VIRTUAL}.gardener"
    yield from _same(now.cluster_identity, before.cluster_identity, f"{path}.clusterIdentity")
    at = f"{path}.gardenerDiscoveryServer"
    if before.discovery_server is None:
        return
    if now.discovery_server is None:
        yield forbidden(at, "gardenerDiscoveryServer must not be removed once it was set")
    elif now.discovery_server.domain or before.discovery_server.domain:
        yield from _same(_discovery_domain(new), _discovery_domain(old), f"{at}.domain.name")


def _discovery_domain(spec: GardenSpec) -> str:
    server = spec.virtual_cluster.gardener.discovery_server
    if server is not None and server.domain is not None:
        return server.domain.name
    domains = spec.runtime_cluster.ingress.domains
    return f"discovery.{domains[0].name}" if domains else ""


def _version(new: str, old: str, path: str) -> Iterator[Cause]:
    if not new:
        yield invalid(path, new, "cannot validate kubernetes version upgrade because it is unset")
        return
    now, before = parse_version(new), parse_version(old)
    if now is None or before is None:
        return  # another rule reports unreadable versions
    # A version too new for this operator never ran: it was written without admission.
    if now < before and before.of_minor <= SUPPORTED[-1]:
        yield forbidden(path, "kubernetes version downgrade is not supported")
    if now >= Version(before.major, before.minor + 2, 0):
        yield forbidden(path, "kubernetes version upgrade cannot skip a minor version")


def _first_domain(new: list[DnsDomain], old: list[DnsDomain], path: str) -> Iterator[Cause]:
    if new and old:
        yield from _same(new[0].name, old[0].name, f"{path}[0].name")


def _append_only(new: list[str], old: list[str], path: str) -> Iterator[Cause]:
    """Yield changes of networks, except corrections of what was written without admission."""
    if not all(map(is_network, old)):
        return
    if len(new) < len(old):
        yield forbidden(path, f"{path.rpartition('.')[2]} cannot be removed")
    for index, (now, before) in enumerate(zip(new, old, strict=False)):
        yield from _same(now, before, f"{path}[{index}]")


def _same(new: JsonValue, old: JsonValue, path: str) -> Iterator[Cause]:
    if new != old:
        yield invalid(path, new, IMMUTABLE)
