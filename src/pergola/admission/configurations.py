"""MutatingWebhookConfiguration and ValidatingWebhookConfiguration (spec 12 §2.1).

They are rendered with every field that the API server defaults, so that stored objects can be
compared with desired ones.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from pergola.admission.registration import Registration
from pergola.api import marks
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, owner_references_of
from pergola.kube.patches import same

MUTATING: Final = GroupVersionKind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"
)
VALIDATING: Final = GroupVersionKind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"
)

Endpoint: TypeAlias = Callable[[str], JsonObject]
"""From a path to the `service` or `url` of a `clientConfig`."""


def by_service(name: str, namespace: str, port: int = 443) -> Endpoint:
    """Reach the server through a Service of the same cluster."""

    def endpoint(path: str) -> JsonObject:
        service = {"name": name, "namespace": namespace, "path": path, "port": port}
        return {"service": service}

    return endpoint


def by_url(base: str) -> Endpoint:
    """Reach the server at a URL such as `https://server.namespace:443`."""

    def endpoint(path: str) -> JsonObject:
        return {"url": f"{base.rstrip('/')}{path}"}

    return endpoint


def reached_at(service: Key, url: str, port: int) -> Endpoint:
    """Reach the server through a Service, or at a URL if there is one.

    Args:
        port: what the server listens on, for a URL without a port.
    """
    if not url:
        return by_service(service.name, service.namespace)
    has_port = urlsplit(url).port is not None
    return by_url(url if has_port else f"{url.rstrip('/')}:{port}")


def hosts_of(service: Key, url: str = "", *others: str) -> tuple[str, ...]:
    """Return the host names of the certificate of a server behind a Service (spec 12 §1.4).

    Args:
        url: has another host name; empty for none.
    """
    name = f"{service.name}.{service.namespace}"
    host = urlsplit(url).hostname
    names = (service.name, name, f"{name}.svc", f"{name}.svc.cluster.local", *others)
    return tuple(dict.fromkeys((*names, host) if host else names))


def configurations(
    name: str,
    labels: Mapping[str, str],
    registrations: Iterable[Registration],
    endpoint: Endpoint,
    bundle: bytes,
) -> list[JsonObject]:
    """Return one configuration for each kind that has registrations.

    Args:
        name: of both objects.
        bundle: the certificates that the API server has to trust, PEM.
    """
    found = []
    ca = base64.b64encode(bundle).decode()
    known = list(registrations)
    for gvk, kind in ((MUTATING, "mutating"), (VALIDATING, "validating")):
        entries = [
            registration.render({**endpoint(registration.path), "caBundle": ca})
            for registration in known
            if registration.kind == kind
        ]
        if entries:
            found.append(
                {
                    "apiVersion": gvk.api_version,
                    "kind": gvk.kind,
                    "metadata": {"name": name, "labels": dict(labels)},
                    "webhooks": entries,
                }
            )
    return found


def is_registered(desired: JsonObject, live: JsonObject | None) -> bool:
    """Return whether a stored configuration is as desired.

    Additional labels are ignored, and all owners if none is desired.
    """
    if live is None:
        return False
    mine = labels_of(desired).items() <= labels_of(live).items()
    owners = owner_references_of(desired)
    is_owned = not owners or owners == owner_references_of(live)
    return mine and is_owned and same(desired["webhooks"], live.get("webhooks"))


def is_left_to_user(live: JsonObject) -> bool:
    """Return whether a user changes a stored configuration in an emergency, as its label says."""
    return labels_of(live).get(marks.BREAK_GLASS) == "true"


def configuration_keys(name: str) -> list[tuple[GroupVersionKind, Key]]:
    """Return the keys of both objects that may exist under a name."""
    return [(MUTATING, Key("", name)), (VALIDATING, Key("", name))]
