"""The documents that register an extension in a landscape, and their rules (spec 40 §8).

A landscape with the operator needs one `Extension`; without the operator, it needs the two
documents that the operator would derive from it, a `ControllerDeployment` and a
`ControllerRegistration`.
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, required, unsupported
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.extension_api.kinds import EXTENSION_KINDS
from pergola.extensions.actuator import Actuator
from pergola.extensions.installation import installation_of, name_of_extension, raw_chart

POLICIES: Final = ("OnDemand", "Always", "AlwaysExceptNoShoots")
POD_SECURITY: Final = "security.gardener.cloud/pod-security-enforce"
_FOR_EXTENSIONS_ONLY: Final = (
    "autoEnable",
    "clusterCompatibility",
    "reconcileTimeout",
    "lifecycle",
)


@dataclass(frozen=True, slots=True)
class Served:
    """A kind and type that an extension serves.

    Attributes:
        primary: whether it is the one that acts on them; others may only observe.
    """

    kind: str
    type: str
    primary: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The registration of an extension.

    Attributes:
        name: the name of all documents, such as `networking-gardenet`.
        chart: the URL of its Helm chart in an OCI registry.
        raw_chart: the packed chart itself, if it is not in a registry.
        values: the values for the chart.
        policy: when to install it on a seed.
        seed_selector: selects seeds; only if nothing is served primarily.
        inject_garden_kubeconfig: whether it gets access to the garden cluster.
        pod_security: the Pod Security level of the namespace where it runs.
        admission: the charts of its admission component, by `runtimeCluster` and `virtualCluster`.
    """

    name: str
    resources: Sequence[Served]
    chart: str = ""
    raw_chart: bytes = b""
    values: JsonObject = field(default_factory=dict)
    policy: str = "OnDemand"
    seed_selector: JsonObject | None = None
    inject_garden_kubeconfig: bool = False
    pod_security: str = "baseline"
    admission: JsonObject = field(default_factory=dict)


def registration_documents(
    actuators: Sequence[Actuator | type[Actuator]], references: Sequence[str], image: str
) -> list[JsonObject]:
    """Return the documents for the extension of some actuators, with their own chart.

    Args:
        references: the arguments of `pergola extension run`, such as `gardenet:Gardenet`.
        image: contains Pergola and the modules of the actuators.
    """
    installation = installation_of(actuators, references, image)
    return controller_documents(registration_of(actuators, chart_data=raw_chart(installation)))


def registration_of(
    actuators: Sequence[Actuator | type[Actuator]], *, chart: str = "", chart_data: bytes = b""
) -> Registration:
    """Return the registration of the extension of some actuators, with every kind primary.

    Raises:
        ExtensionError: they belong to several extensions, or there is none.
    """
    served = dict.fromkeys(Served(actuator.kind, actuator.type) for actuator in actuators)
    return Registration(
        name=_name_of_registration(actuators),
        resources=tuple(served),
        chart=chart,
        raw_chart=chart_data,
    )


def _name_of_registration(actuators: Sequence[Actuator | type[Actuator]]) -> str:
    names = [actuator.registered_as for actuator in actuators if actuator.registered_as]
    return names[0] if names else name_of_extension(actuators)


def controller_documents(registration: Registration) -> list[JsonObject]:
    """Return the ControllerDeployment and the ControllerRegistration."""
    return [controller_deployment(registration), controller_registration(registration)]


def extension(registration: Registration) -> JsonObject:
    """Return the operator's `Extension`; its chart must be in a registry."""
    deployment: JsonObject = {"extension": _extension_deployment(registration)}
    if registration.admission:
        deployment["admission"] = registration.admission
    return {
        "apiVersion": "operator.gardener.cloud/v1alpha1",
        "kind": "Extension",
        "metadata": _metadata(registration),
        "spec": {"resources": _resources(registration), "deployment": deployment},
    }


def controller_deployment(registration: Registration) -> JsonObject:
    """Return the ControllerDeployment."""
    helm: JsonObject = {"values": registration.values} if registration.values else {}
    if registration.chart:
        helm["ociRepository"] = {"ref": registration.chart}
    else:
        helm["rawChart"] = base64.b64encode(registration.raw_chart).decode()
    document: JsonObject = {
        "apiVersion": "core.gardener.cloud/v1",
        "kind": "ControllerDeployment",
        "metadata": {"name": registration.name},
        "helm": helm,
    }
    if registration.inject_garden_kubeconfig:
        document["injectGardenKubeconfig"] = True
    return document


def controller_registration(registration: Registration) -> JsonObject:
    """Return the ControllerRegistration."""
    deployment: JsonObject = {
        "policy": registration.policy,
        "deploymentRefs": [{"name": registration.name}],
    }
    if registration.seed_selector is not None:
        deployment["seedSelector"] = registration.seed_selector
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ControllerRegistration",
        "metadata": _metadata(registration),
        "spec": {"resources": _resources(registration), "deployment": deployment},
    }


def check(document: JsonObject) -> list[Cause]:
    """Return all findings about an `Extension` or a `ControllerRegistration`."""
    return [*_resource_problems(document), *_deployment_problems(document)]


def check_update(new: JsonObject, old: JsonObject) -> list[Cause]:
    """Return the forbidden changes of a registration: `primary` is immutable."""
    before = {_served(r): _is_primary(r) for r in maps_at(old, "spec", "resources")}
    return [
        invalid(f"spec.resources[{index}].primary", _is_primary(resource), "field is immutable")
        for index, resource in enumerate(maps_at(new, "spec", "resources"))
        if before.get(_served(resource), _is_primary(resource)) != _is_primary(resource)
    ]


def _extension_deployment(registration: Registration) -> JsonObject:
    deployment: JsonObject = {"policy": registration.policy}
    if registration.chart:
        deployment["helm"] = {"ociRepository": {"ref": registration.chart}}
    if registration.values:
        deployment["values"] = registration.values
    if registration.seed_selector is not None:
        deployment["seedSelector"] = registration.seed_selector
    if registration.inject_garden_kubeconfig:
        deployment["injectGardenKubeconfig"] = True
    return deployment


def _metadata(registration: Registration) -> JsonObject:
    metadata: JsonObject = {"name": registration.name}
    if registration.pod_security:
        metadata["annotations"] = {POD_SECURITY: registration.pod_security}
    return metadata


def _resources(registration: Registration) -> list[JsonObject]:
    # Primary is the default, so it is omitted.
    return [
        {"kind": served.kind, "type": served.type, **({} if served.primary else {"primary": False})}
        for served in registration.resources
    ]


def _resource_problems(document: JsonObject) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, resource in enumerate(maps_at(document, "spec", "resources")):
        path, served = f"spec.resources[{index}]", _served(resource)
        if served[0] not in EXTENSION_KINDS:
            yield unsupported(f"{path}.kind", served[0], sorted(EXTENSION_KINDS))
        if not served[1]:
            yield required(f"{path}.type")
        if served in seen:
            yield duplicate(path, "/".join(served))
        seen.add(served)
        yield from _forbidden_fields(resource, path)


def _forbidden_fields(resource: JsonObject, path: str) -> Iterable[Cause]:
    if resource.get("kind") == "Extension":
        return ()
    return (
        forbidden(f"{path}.{name}", 'field may only be set for the kind "Extension"')
        for name in _FOR_EXTENSIONS_ONLY
        if resource.get(name) not in (None, [], {})
    )


def _deployment_problems(document: JsonObject) -> Iterator[Cause]:
    of_operator = document.get("kind") == "Extension"
    steps = ("spec", "deployment", "extension") if of_operator else ("spec", "deployment")
    deployment, path = map_at(document, *steps), ".".join(steps)
    policy = deployment.get("policy")
    if policy is not None and policy not in POLICIES:
        yield unsupported(f"{path}.policy", policy, POLICIES)
    primary = any(map(_is_primary, maps_at(document, "spec", "resources")))
    if deployment.get("seedSelector") is not None and primary:
        yield forbidden(
            f"{path}.seedSelector",
            "seeds cannot be chosen for an extension that serves a kind and type primarily",
        )
    if len(maps_at(deployment, "deploymentRefs")) > 1:
        yield forbidden(f"{path}.deploymentRefs", "only one deployment can be referred to")


def _served(resource: JsonObject) -> tuple[str, str]:
    return str(resource.get("kind") or ""), str(resource.get("type") or "")


def _is_primary(resource: JsonObject) -> bool:
    return resource.get("primary") is not False
