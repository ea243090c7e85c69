"""The fields of an InfraCluster that core reads, in both generations of the contract (spec 50 §4).

A CRD's labels name the contracts that it follows, and the API versions for each. Core uses only the
newest contract with a label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pergola.api.cluster_api import CONTRACT_VERSIONS, ContractVersion, contract_label
from pergola.api.objects import GroupVersionKind, JsonObject, labels_of, map_at, name_of
from pergola.externally_managed.hosts import host_problem
from pergola.externally_managed.versions import newest

_HOST_CHARACTERS: Final = 512
_LAST_PORT: Final = 65535


class ContractError(Exception):
    """An object or CRD violates the contract; the text is core's own if it has one."""


class Contract(NamedTuple):
    """The contract of an InfraCluster kind.

    Attributes:
        version: the contract version, which determines the format of the status.
        api_version: the version of the kind that core reads, watches and patches.
        versions: all contract versions that the CRD names, the effective one first.
    """

    version: ContractVersion
    api_version: str
    versions: tuple[ContractVersion, ...]


class Endpoint(NamedTuple):
    """The control plane endpoint."""

    host: str
    port: int

    @property
    def is_valid(self) -> bool:
        """Whether host and port are set, so that core would copy it."""
        return (
            bool(self.host) and 0 < self.port <= _LAST_PORT and len(self.host) <= _HOST_CHARACTERS
        )

    @property
    def problem(self) -> str | None:
        """Return why clients cannot connect to it, as the end of a sentence; None if they can."""
        problem = host_problem(self.host)
        if problem:
            return f'host "{self.host}" {problem}'
        if not 0 < self.port <= _LAST_PORT:
            return f"port {self.port} must be between 1 and {_LAST_PORT}"
        return None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, order=True)
class FailureDomain:
    """A part of the infrastructure that fails independently, such as an availability zone."""

    name: str
    control_plane: bool = True
    attributes: Mapping[str, str] = field(default_factory=dict, compare=False)


def contract_of(crd: Mapping[str, Any]) -> Contract:
    """Return the contract that a CRD follows.

    Raises:
        ContractError: the CRD has no contract label; the text is core's.
    """
    labels = labels_of(crd)
    found = tuple(v for v in CONTRACT_VERSIONS if labels.get(contract_label(v)))
    if not found:
        asked = " ".join(f'"{version}"' for version in CONTRACT_VERSIONS)
        raise ContractError(
            f"cannot find any versions matching contract versions [{asked}] for CRD "
            f"{name_of(crd)} as contract version label(s) are either missing or empty"
        )
    listed = labels[contract_label(found[0])].split("_")
    return Contract(found[0], newest(listed), found)


def kind_of(crd: Mapping[str, Any], contract: Contract) -> GroupVersionKind:
    """Return the kind that a CRD defines, in the version that the contract selects."""
    spec = map_at(crd, "spec")
    return GroupVersionKind(
        str(spec.get("group", "")), contract.api_version, str(map_at(spec, "names").get("kind", ""))
    )


def endpoint_of(obj: Mapping[str, Any]) -> Endpoint:
    """Return the endpoint of an InfraCluster or Cluster; without one, host "" and port 0."""
    endpoint = map_at(obj, "spec", "controlPlaneEndpoint")
    host, port = endpoint.get("host"), endpoint.get("port")
    return Endpoint(
        host if isinstance(host, str) else "",
        port if isinstance(port, int) and not isinstance(port, bool) else 0,
    )


def effective_endpoint(
    obj: Mapping[str, Any], cluster: Mapping[str, Any] | None
) -> Endpoint | None:
    """Return the endpoint of an InfraCluster, else that of its Cluster; None if both have none.

    A control plane provider may set the Cluster's, and the contract then requires no other one.
    """
    found = (endpoint_of(each) for each in (obj, cluster) if each is not None)
    return next((endpoint for endpoint in found if endpoint.is_valid), None)


def is_provisioned(obj: Mapping[str, Any], version: ContractVersion) -> bool:
    """Return whether core counts the infrastructure as provisioned.

    Raises:
        ContractError: the field has another type; the text is core's.
    """
    if version == "v1beta1":
        value = map_at(obj, "status").get("ready")
    else:
        value = map_at(obj, "status", "initialization").get("provisioned")
    if value is not None and not isinstance(value, bool):
        raise ContractError(f"accessor error: {value} is of the type {_go(value)}, expected bool")
    return bool(value)


def done(version: ContractVersion) -> JsonObject:
    """Return the part of a status that declares the infrastructure provisioned."""
    return {"ready": True} if version == "v1beta1" else {"initialization": {"provisioned": True}}


def render_failure_domains(
    domains: Sequence[FailureDomain], version: ContractVersion
) -> JsonObject | list[JsonObject]:
    """Return failure domains in the format of a contract: a map (v1beta1) or a sorted list."""
    rendered = {
        domain.name: {
            "controlPlane": domain.control_plane,
            **({"attributes": dict(domain.attributes)} if domain.attributes else {}),
        }
        for domain in sorted(domains)
    }
    if version == "v1beta1":
        return rendered
    return [{"name": name, **value} for name, value in rendered.items()]


def failure_domains_of(obj: Mapping[str, Any], version: ContractVersion) -> list[FailureDomain]:
    """Return the failure domains of a status by name; an absent `controlPlane` is false.

    Raises:
        ContractError: the domains have the format of the other contract; the text is core's.
    """
    value = map_at(obj, "status").get("failureDomains")
    if value is None:
        return []
    if version == "v1beta1" and isinstance(value, dict):
        items = [
            {"name": name, **entry} for name, entry in value.items() if isinstance(entry, dict)
        ]
    elif version == "v1beta2" and isinstance(value, list):
        items = [entry for entry in value if isinstance(entry, dict)]
    else:
        expected = "map[string]interface {}" if version == "v1beta1" else "[]interface{}"
        raise ContractError(
            f"status.failureDomains is of the type {_go(value)}, expected {expected}"
        )
    return sorted(
        FailureDomain(
            str(item.get("name", "")), item.get("controlPlane") is True, map_at(item, "attributes")
        )
        for item in items
    )


def _go(value: object) -> str:
    """Return Go's name for the type of a JSON value."""
    names: dict[type, str] = {
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
        list: "[]interface {}",
        dict: "map[string]interface {}",
    }
    return names.get(type(value), type(value).__name__)
