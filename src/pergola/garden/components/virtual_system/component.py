"""The system resources of the virtual cluster as a component of the Garden."""

from collections.abc import Iterator
from typing import Final

from pergola.api import marks
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Managed, Rendered, Target
from pergola.garden.components.gardener_program import CONDITION
from pergola.garden.components.virtual_system.operators import operators
from pergola.garden.components.virtual_system.projects import projects
from pergola.garden.components.virtual_system.roles import unbound
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import KUBE_SYSTEM, READ, cluster_role, group, manifest, role, rule

PUBLIC: Final = "gardener-system-public"
"""The namespace with objects that every user of the virtual cluster may read."""

_NAME: Final = "garden-system-virtual"
_EVERYBODY: Final = group("system:authenticated")
_BOOTSTRAPPERS: Final = group("system:bootstrappers")
_PREFIX: Final = "gardener.cloud:system"
_REQUESTS: Final = "certificatesigningrequests"
_GLOBAL: Final = ("cloudprofiles", "controllerregistrations", "exposureclasses", "seeds")


def render(landscape: Landscape) -> Rendered:
    """Return namespaces and roles."""
    del landscape
    objects = (*_namespaces(), *operators(), *projects(), *_gardenlets(), *_everybody())
    managed = Managed(name=_NAME, objects=objects, target=Target.VIRTUAL, condition=CONDITION)
    return Rendered(managed=(managed,))


def _namespaces() -> Iterator[JsonObject]:
    yield manifest(
        "v1",
        "Namespace",
        NAMESPACE,
        labels={"app": "gardener"},
        annotations={marks.KEEP_OBJECT: "true"},
    )
    yield manifest("v1", "Namespace", PUBLIC)


def _gardenlets() -> list[JsonObject]:
    """Return the role of gardenlets that have only a bootstrap token."""
    group_ = "certificates.k8s.io"
    signers = [f"{_REQUESTS}/{client}" for client in ("seedclient", "shootclient")]
    rules = [rule(group_, [_REQUESTS], ["create", "get"]), rule(group_, signers, ["create"])]
    return cluster_role(f"{_PREFIX}:seed-bootstrapper", rules, _BOOTSTRAPPERS)


def _everybody() -> Iterator[JsonObject]:
    """Yield the roles of all users, and the unbound role that allows creating projects."""
    global_resources = [
        rule(GARDENER_CORE, _GLOBAL, READ),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
    ]
    reviews = [
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["selfsubjectaccessreviews"], ["create"]),
    ]
    yield from cluster_role(f"{_PREFIX}:read-global-resources", global_resources, _EVERYBODY)
    yield from cluster_role(f"{_PREFIX}:user-auth", reviews, _EVERYBODY)
    yield unbound(f"{_PREFIX}:project-creation", [rule(GARDENER_CORE, ["projects"], ["create"])])
    yield from _config_maps(
        f"{_PREFIX}:read-cluster-identity-configmap", KUBE_SYSTEM, "cluster-identity"
    )
    yield from _config_maps(f"{_PREFIX}:read-{PUBLIC}", PUBLIC, "gardener-info", "kube-root-ca.crt")


def _config_maps(name: str, namespace: str, *names: str) -> list[JsonObject]:
    return role(name, namespace, [rule("", ["configmaps"], READ, names)], _EVERYBODY)


VIRTUAL_SYSTEM: Final = Component(
    name=_NAME,
    deploy="Deploying virtual system resources",
    after=("Deploying gardener-resource-manager for virtual garden",),
    render=render,
)
