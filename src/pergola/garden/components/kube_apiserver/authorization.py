"""The authorization of requests to the kube-apiserver (spec 20 §15.2).

Gardenlets may access only objects that belong to their Seeds. Webhooks of the
gardener-admission-controller decide on their requests, and on no others.
"""

import base64
from collections.abc import Iterator
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at, maps_at, name_of
from pergola.bundle import make_unique
from pergola.bundle.versions import Version
from pergola.garden.components import authorities
from pergola.garden.components.api_server.part import (
    Part,
    mounted_config_map,
    mounted_secret,
)
from pergola.garden.components.referenced_files import referenced_map
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import manifest
from pergola.pki import kubeconfig

_GROUP: Final = "apiserver.config.k8s.io"
_FILE: Final = "config.yaml"
_PATH: Final = "/etc/kubernetes/structured/authorization"
_KUBECONFIGS: Final = "/etc/kubernetes/structured/authorization-kubeconfigs"
_STABLE_SINCE: Final = Version(1, 32)
_ADMISSION_CONTROLLER: Final = "https://gardener-admission-controller"
_SOONEST: Final = "1ns"
"""Practically no caching: 0 would select the default."""


class _Authorizer(NamedTuple):
    """A webhook of the gardener-admission-controller, and the condition that calls it."""

    name: str
    condition: str


_AUTHORIZERS: Final = (
    _Authorizer(
        "seed",
        "'gardener.cloud:system:seeds' in request.groups || "
        "request.groups.exists(e, e.startsWith('system:serviceaccounts:seed-'))",
    ),
    # Extensions of self-hosted Shoots have ServiceAccounts in the namespaces of projects.
    _Authorizer(
        "shoot",
        "'gardener.cloud:system:shoots' in request.groups || "
        "(request.groups.exists(e, e == 'system:serviceaccounts:garden' || "
        "e.startsWith('system:serviceaccounts:garden-')) && "
        "request.user.contains(':extension-shoot--'))",
    ),
)


def authorization(landscape: Landscape) -> Part:
    """Return the authorizers as flags and files: RBAC, Gardener's webhooks, then the user's.

    Raises:
        ReferenceMissing: An object that the settings name does not exist or lacks its key.
        ReferenceMalformed: The user's configuration is not a YAML map.
    """
    config = make_unique(
        manifest(
            "v1",
            "ConfigMap",
            "kube-apiserver-authorization-config",
            namespace=NAMESPACE,
            data={_FILE: dump(_configuration(landscape))},
        )
    )
    secret = make_unique(
        manifest(
            "v1",
            "Secret",
            "kube-apiserver-authorization-webhooks-kubeconfigs",
            namespace=NAMESPACE,
            type="Opaque",
            data=dict(_kubeconfigs(landscape)),
        )
    )
    return (
        mounted_config_map("authorization-config", _PATH, name_of(config), read_only=True)
        + mounted_secret("authorization-kubeconfigs", _KUBECONFIGS, name_of(secret), read_only=True)
        + Part(args=(f"--authorization-config={_PATH}/{_FILE}",), objects=(config, secret))
    )


def _configuration(landscape: Landscape) -> JsonObject:
    version = "v1" if landscape.version >= _STABLE_SINCE else "v1beta1"
    return {
        "apiVersion": f"{_GROUP}/{version}",
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            {"type": "RBAC", "name": "rbac"},
            *map(_webhook, _AUTHORIZERS),
            *_of_user(landscape),
        ],
    }


def _webhook(authorizer: _Authorizer) -> JsonObject:
    return {
        "type": "Webhook",
        "name": f"{authorizer.name}-authorizer",
        "webhook": {
            "authorizedTTL": _SOONEST,
            "unauthorizedTTL": _SOONEST,
            "timeout": "10s",
            "failurePolicy": "Deny",
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "matchConditions": [{"expression": authorizer.condition}],
            "connectionInfo": _connection(f"{authorizer.name}-authorizer"),
        },
    }


def _of_user(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the webhooks of the user's configuration, with the paths of the mounted kubeconfigs.

    Authorizers of other types are skipped: those that a garden needs are already configured.
    """
    settings = landscape.api_server.structured_authorization
    if settings is None:
        return
    for each in maps_at(referenced_map(landscape, settings.config_map_name, _FILE), "authorizers"):
        if each.get("type") == "Webhook":
            info = {"connectionInfo": _connection(str(each.get("name", "")))}
            yield {**each, "webhook": {**map_at(each, "webhook"), **info}}


def _connection(name: str) -> JsonObject:
    return {"type": "KubeConfigFile", "kubeConfigFile": f"{_KUBECONFIGS}/{_file(name)}"}


def _kubeconfigs(landscape: Landscape) -> Iterator[tuple[str, str]]:
    bundle = landscape.credentials.bundle(authorities.GARDENER).data["bundle.crt"]
    for authorizer in _AUTHORIZERS:
        server = f"{_ADMISSION_CONTROLLER}/webhooks/auth/{authorizer.name}"
        name = f"{authorizer.name}-authorization-webhook"
        content = dump(kubeconfig(name, server, bundle, None)).encode()
        yield _file(f"{authorizer.name}-authorizer"), base64.b64encode(content).decode()
    settings = landscape.api_server.structured_authorization
    for given in settings.kubeconfigs if settings is not None else ():
        content = landscape.referenced_value("Secret", given.secret_name, "kubeconfig")
        yield _file(given.authorizer_name), base64.b64encode(content).decode()


def _file(authorizer: str) -> str:
    return f"{authorizer}-kubeconfig.yaml"
