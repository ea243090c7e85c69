"""Warnings about settings of a Garden that are valid but risky or deprecated."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from pergola.api.known.kubernetes_versions import SUPPORTED, parse_version
from pergola.api.objects import metadata_of
from pergola.api.operator_v1alpha1 import Garden
from pergola.api.operator_v1alpha1.etcd import EtcdEvents
from pergola.api.operator_v1alpha1.status import CredentialsRotation
from pergola.operator.rotation.ages import OLDEST

_SERVER: Final = "spec.virtualCluster.kubernetes.kubeAPIServer"


def warnings_about(garden: Garden, old: Garden | None, now: datetime) -> Iterator[str]:
    """Yield the warnings about a Garden that is created or updated."""
    yield from _deprecated(garden)
    yield from _risky(garden)
    if old is not None:
        yield from _without_effect(garden, old)
    if names := list(_old_credentials(garden, now)):
        yield (
            f"credentials have not been rotated for {OLDEST.days} days: {', '.join(names)}; "
            "annotate the Garden with gardener.cloud/operation=rotate-credentials-start"
        )


def _deprecated(garden: Garden) -> Iterator[str]:
    server = garden.spec.virtual_cluster.kubernetes.kube_api_server
    if server.enable_anonymous_authentication is not None:
        yield (
            f"{_SERVER}.enableAnonymousAuthentication is deprecated and not allowed as of "
            "Kubernetes 1.35; use structuredAuthentication"
        )
    if server.watch_cache_sizes is not None and server.watch_cache_sizes.default is not None:
        yield (
            f"{_SERVER}.watchCacheSizes.default is deprecated, has no effect, and is not allowed "
            "as of Kubernetes 1.35"
        )
    if server.oidc_config is not None:
        yield f"{_SERVER}.oidcConfig is deprecated; use structuredAuthentication"


def _risky(garden: Garden) -> Iterator[str]:
    virtual = garden.spec.virtual_cluster
    if virtual.etcd.main.backup is None:
        yield (
            "spec.virtualCluster.etcd.main.backup is not set: the garden is lost with the volume "
            "of its etcd"
        )
    if virtual.control_plane.high_availability is None:
        yield (
            "spec.virtualCluster.controlPlane.highAvailability is not set: the garden fails with "
            "the node of its etcd"
        )
    version = parse_version(virtual.kubernetes.version)
    if version is not None and version.of_minor == SUPPORTED[0]:
        yield (
            f"spec.virtualCluster.kubernetes.version: {version.of_minor} is the oldest supported "
            "version; the next release of the operator may drop it"
        )


def _without_effect(garden: Garden, old: Garden) -> Iterator[str]:
    now, before = garden.spec.virtual_cluster.etcd, old.spec.virtual_cluster.etcd
    parts: tuple[tuple[str, EtcdEvents, EtcdEvents], ...] = (
        ("main", now.main, before.main),
        ("events", now.events, before.events),
    )
    for name, part, earlier in parts:
        if part.storage is None or earlier.storage is None:
            continue
        if part.storage.capacity != earlier.storage.capacity:
            yield (
                f"spec.virtualCluster.etcd.{name}.storage.capacity has no effect on volumes that "
                "exist"
            )


def _old_credentials(garden: Garden, now: datetime) -> Iterator[str]:
    created = _time(metadata_of({"metadata": garden.metadata}).get("creationTimestamp"))
    if created is None:
        return
    credentials = garden.status.credentials if garden.status else None
    rotation = (credentials.rotation if credentials else None) or CredentialsRotation()
    rotations = {
        "certificateAuthorities": rotation.certificate_authorities,
        "serviceAccountKey": rotation.service_account_key,
        "etcdEncryptionKey": rotation.etcd_encryption_key,
        "observability": rotation.observability,
        "workloadIdentityKey": rotation.workload_identity_key,
    }
    for name, found in rotations.items():
        begun = _time(found.last_initiation_time) if found else None
        if now - (begun or created) > OLDEST:
            yield name


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
