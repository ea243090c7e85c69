"""Problems with the registration, serving and trust of webhooks; pure functions.

A webhook that fails closed but is not served blocks all requests that it reviews. So does one that
reviews requests its own server needs in order to start.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from cryptography import x509

from pergola.admission.review import GroupVersionResource
from pergola.admission.selection import Candidate, why_not_selected
from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.kube.patches import same
from pergola.pki import hosts_of, renewal_of, signed_by


class Finding(NamedTuple):
    """A problem, existing or imminent.

    Attributes:
        webhook: the name of an entry; empty if it affects several.
    """

    severity: Literal["error", "warning"]
    webhook: str
    text: str


class Need(NamedTuple):
    """A request that must be allowed while no webhook is served, so that it can be."""

    what: str
    candidate: Candidate


def entries(configurations: Iterable[JsonObject]) -> dict[str, JsonObject]:
    """Return all entries of some configurations by name."""
    return {
        str(entry.get("name")): entry
        for configuration in configurations
        for entry in maps_at(configuration, "webhooks")
    }


def blocking(known: Mapping[str, JsonObject], needs: Iterable[Need]) -> Iterator[Finding]:
    """Find entries that prevent an installation from starting."""
    for need in needs:
        for name, entry in known.items():
            fails_closed = entry.get("failurePolicy", "Fail") == "Fail"
            if fails_closed and why_not_selected(entry, need.candidate) is None:
                yield Finding(
                    "error",
                    name,
                    f"blocks its own start: it is asked about {need.what}, fails closed",
                )


def unlike(desired: Mapping[str, JsonObject], live: Mapping[str, JsonObject]) -> Iterator[Finding]:
    """Find entries that are not registered, registered differently, or not served.

    The server's address is checked by `misplaced`.
    """
    for name in desired:
        if name not in live:
            yield Finding("error", name, "is served but not registered")
        elif parts := differing(desired[name], live[name]):
            yield Finding("warning", name, f"is registered with other {', '.join(parts)}")
    for name in live:
        if name not in desired:
            yield Finding("error", name, "is registered but not served by this configuration")


def misplaced(
    desired: Mapping[str, JsonObject], live: Mapping[str, JsonObject], hint: str = ""
) -> Iterator[Finding]:
    """Find entries registered at another address, with one finding for all that share it."""
    moved: dict[tuple[str, str], list[str]] = {}
    for name, entry in desired.items():
        addresses = address_of(live.get(name, entry)), address_of(entry)
        if addresses[0] != addresses[1]:
            moved.setdefault(addresses, []).append(name)
    for (found, expected), names in moved.items():
        subject = names[0] if len(names) == 1 else ""
        count = "" if len(names) == 1 else f"{len(names)} webhooks are "
        verb = "is " if len(names) == 1 else ""
        yield Finding(
            "warning", subject, f"{count}{verb}registered at {found}, expected {expected}{hint}"
        )


def address_of(entry: JsonObject) -> str:
    """Return the server's address in an entry, such as `Service garden/manager:443`."""
    config = map_at(entry, "clientConfig")
    if url := config.get("url"):
        return f"https://{urlsplit(str(url)).netloc}"
    service = map_at(config, "service")
    return f"Service {service.get('namespace')}/{service.get('name')}:{service.get('port', 443)}"


def differing(desired: JsonObject, live: JsonObject) -> list[str]:
    """Return the parts in which two entries differ, except for their address and CA bundle."""
    return [
        name for name in desired if not same(_comparable(name, desired), _comparable(name, live))
    ]


def unserved(known: Mapping[str, JsonObject], served: Collection[str]) -> Iterator[Finding]:
    """Find entries whose path is not served."""
    for name, entry in known.items():
        if path_of(entry) not in served:
            yield Finding("error", name, f"is registered, but {path_of(entry)} is not served")


def path_of(entry: JsonObject) -> str:
    """Return the path of an entry."""
    config = map_at(entry, "clientConfig")
    if url := config.get("url"):
        return urlsplit(str(url)).path
    return str(map_at(config, "service").get("path", "/"))


def host_of(entry: JsonObject) -> str:
    """Return the host name by which an API server verifies the server of an entry."""
    config = map_at(entry, "clientConfig")
    if url := config.get("url"):
        return urlsplit(str(url)).hostname or ""
    service = map_at(config, "service")
    return f"{service.get('name')}.{service.get('namespace')}.svc"


def untrusted(
    name: str,
    bundle: Collection[x509.Certificate],
    served: x509.Certificate | None,
    host: str,
    now: datetime,
) -> Iterator[Finding]:
    """Find problems with the certificates of an entry.

    Args:
        bundle: the authorities that the API server trusts.
        served: the server's certificate; None if unknown.
    """
    if not bundle:
        yield Finding("error", name, "has no CA bundle: no API server will trust its server")
    valid = [ca for ca in bundle if ca.not_valid_before_utc <= now < ca.not_valid_after_utc]
    if bundle and not valid:
        last = max(ca.not_valid_after_utc for ca in bundle)
        yield Finding(
            "error",
            name,
            f"trusts only expired authorities, the last of which expired {_day(last)}",
        )
    if served is None:
        return
    if not served.not_valid_before_utc <= now < served.not_valid_after_utc:
        ended = _day(served.not_valid_after_utc)
        yield Finding("error", name, f"is served with a certificate that expired {ended}")
    elif now >= renewal_of(served):
        yield Finding(
            "warning",
            name,
            f"is served with a certificate that expires {_day(served.not_valid_after_utc)} and "
            "should have been renewed",
        )
    if valid and not any(signed_by(served, ca) for ca in valid):
        yield Finding(
            "error", name, "is served with a certificate that its CA bundle does not trust"
        )
    if host not in hosts_of(served):
        yield Finding("error", name, f"is served with a certificate that is not for {host}")


def own_needs(
    name: str, namespace: str, namespace_labels: Mapping[str, str], pods: Iterable[JsonObject]
) -> Iterator[Need]:
    """Return the requests that must be allowed while an installation is down.

    Args:
        name: the value of its label `app`.
        pods: templates of its pods; if there are none, a pod with only that label.
    """
    labels = [map_at(pod, "metadata", "labels") for pod in pods] or [{"app": name}]
    for found in labels:
        yield Need(
            f"the creation of its own pods in namespace {namespace}",
            Candidate(
                "CREATE",
                GroupVersionResource("", "v1", "pods"),
                labels=found,
                namespace_labels=namespace_labels,
            ),
        )
    yield Need(
        "the creation of static pods in kube-system",
        Candidate(
            "CREATE",
            GroupVersionResource("", "v1", "pods"),
            labels={"static-pod": "true"},
            namespace_labels={"kubernetes.io/metadata.name": "kube-system"},
        ),
    )
    for group, version, resource in (
        ("coordination.k8s.io", "v1", "leases"),
        ("", "v1", "secrets"),
        ("", "v1", "serviceaccounts"),
        ("apps", "v1", "replicasets"),
    ):
        yield Need(
            f"the creation of {resource} in namespace {namespace}",
            Candidate(
                "CREATE",
                GroupVersionResource(group, version, resource),
                labels={"app": name},
                namespace_labels=namespace_labels,
            ),
        )


def _comparable(name: str, entry: JsonObject) -> JsonValue:
    if name == "clientConfig":
        return path_of(entry)
    value: JsonValue = entry.get(name)
    if name == "admissionReviewVersions" and isinstance(value, list):
        return [*sorted(map(str, value))]
    return value


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")
