"""Access of the operator and of administrators to the virtual cluster (spec 20 §15.5).

The resource manager of the virtual cluster writes a token into the kubeconfig of each Secret and
renews it in time. Applying the Secrets therefore keeps their current tokens.
"""

import base64
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import Identity, JsonObject, Key, map_at
from pergola.garden.components import authorities, task_names
from pergola.garden.components.component import (
    Clusters,
    Component,
    Managed,
    Removable,
    Rendered,
    Target,
)
from pergola.garden.components.gardener_program import CONDITION
from pergola.garden.components.virtual_access import API_SERVER
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.errors import ConfigurationError
from pergola.kube.kubeconfig_file import parse_kubeconfig
from pergola.kube.yaml import dump
from pergola.manifests import KUBE_SYSTEM, account, manifest
from pergola.manifests.shoot_access import requests_token, token_of
from pergola.pki import Token, kubeconfig

EXTERNAL: Final = "gardener"
"""The Secret whose kubeconfig works everywhere."""
INTERNAL: Final = "gardener-internal"
"""The Secret whose kubeconfig works in the runtime cluster, even if DNS outside does not."""

_NAME: Final = "gardener-access"
_MANAGED: Final = "shoot-core-gardeneraccess"
_RBAC: Final = "rbac.authorization.k8s.io"


def render(landscape: Landscape) -> Rendered:
    """Return the Secrets, and the permissions of their accounts."""
    servers = {
        EXTERNAL: f"https://api.{landscape.domains[0]}",
        INTERNAL: f"https://{API_SERVER}.{NAMESPACE}.svc.cluster.local",
    }
    managed = Managed(
        name=_MANAGED,
        objects=(_binding(),),
        target=Target.VIRTUAL,
        condition=CONDITION,
        keep=True,
    )
    secrets = tuple(_secret(landscape, name, server) for name, server in servers.items())
    return Rendered(managed=(managed,), direct=secrets)


def _secret(landscape: Landscape, name: str, server: str) -> JsonObject:
    authority = landscape.credentials.bundle(authorities.CLUSTER).data["bundle.crt"]
    token = Token(landscape.access_tokens.get(name, ""))
    content = dump(kubeconfig(NAMESPACE, server, authority, token))
    return manifest(
        "v1",
        "Secret",
        name,
        namespace=NAMESPACE,
        labels=requests_token(),
        annotations=token_of(name),
        type="Opaque",
        data={"kubeconfig": base64.b64encode(content.encode()).decode()},
    )


async def learn(landscape: Landscape, clusters: Clusters) -> Landscape:
    """Learn the tokens in the kubeconfigs of the Secrets.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    tokens = {}
    for name in (EXTERNAL, INTERNAL):
        secret = await clusters.client.find(SECRET, Key(NAMESPACE, name))
        tokens[name] = _token(map_at(secret or {}, "data").get("kubeconfig"))
    known = {name: token for name, token in tokens.items() if token}
    return replace(landscape, access_tokens=known)


def _token(encoded: object) -> str:
    with suppress(ValueError, ConfigurationError):
        content = base64.b64decode(str(encoded or ""))
        kubeconfig = parse_kubeconfig([(Path(EXTERNAL), content)])
        return kubeconfig.user(kubeconfig.context()).text("token")
    return ""


def _binding() -> JsonObject:
    return manifest(
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        "gardener.cloud:system:gardener",
        roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        subjects=[account(name, KUBE_SYSTEM) for name in (EXTERNAL, INTERNAL)],
    )


GARDENER_ACCESS: Final = Component(
    name=_NAME,
    deploy="Deploying resources for gardener-operator access to virtual garden",
    after=(task_names.VIRTUAL_RESOURCE_MANAGER_READY,),
    learn=learn,
    render=render,
    removable=Removable(
        managed=(Key(NAMESPACE, _MANAGED),),
        direct=tuple(Identity(SECRET, Key(NAMESPACE, name)) for name in (EXTERNAL, INTERNAL)),
    ),
    limit=120.0,
)
