"""The network that an external manager fills into an InfraCluster (spec 50 §5).

A description, in a ConfigMap or Secret under the key `network.yaml`, looks like this:

    endpoint: {host: api.demo.example.org, port: 6443}
    failureDomains:
    - name: zone-a
      attributes: {rack: r1}
    - name: zone-b
      controlPlane: false
    spec:            # other fields of the InfraCluster's spec, as its provider defines them
      network: {id: net-1}
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta
from msgspec import field as value_field

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.api.schema import Finding, Value, read, schema_of, validate
from pergola.api.schema.validate import NO_EFFECT
from pergola.externally_managed.contract import Endpoint, FailureDomain
from pergola.externally_managed.hosts import host_problem
from pergola.externally_managed.ownership import ENDPOINT


class EndpointValue(Value):
    """The control plane endpoint."""

    host: Annotated[str, Meta(min_length=1, max_length=512)]
    """A DNS name or an IP address, without scheme and port."""
    port: Annotated[int, Meta(ge=1, le=65535)]
    """The port of the API server."""


class DomainValue(Value):
    """A part of the infrastructure that fails independently."""

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    """The name, such as that of a zone."""
    control_plane: bool = True
    """Whether control plane machines may run there."""
    attributes: dict[str, str] = {}  # noqa: RUF012 - Structs copy an empty default
    """Attributes that the provider requires to place machines there."""


class NetworkValue(Value):
    """An existing network."""

    endpoint: EndpointValue | None = None
    """The control plane endpoint; may be set on the InfraCluster instead."""
    failure_domains: Annotated[list[DomainValue], Meta(max_length=100)] = []  # noqa: RUF012 - Structs copy an empty default
    """The parts of the infrastructure that fail independently."""
    spec: JsonObject = value_field(default_factory=dict)
    """Other fields of the InfraCluster's spec, as its provider defines them."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network, as a source describes it.

    Attributes:
        spec: the fields of the InfraCluster's spec that the source knows, except the endpoint.
        status: extra fields of its status.
        problems: one sentence for each missing part; with any, the network is not ready.
    """

    endpoint: Endpoint | None = None
    failure_domains: tuple[FailureDomain, ...] = ()
    spec: JsonObject = field(default_factory=dict)
    status: JsonObject = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def desired_spec(self) -> JsonObject:
        """Return the desired spec of the InfraCluster."""
        if self.endpoint is None:
            return self.spec
        return {**self.spec, ENDPOINT: {"host": self.endpoint.host, "port": self.endpoint.port}}


def read_network(value: JsonValue, of: str) -> Network | list[str]:
    """Return the described network, or all problems of the description, one sentence each.

    Args:
        of: the title of the description, such as `ConfigMap demo/net`.
    """
    findings = [*_malformed(value), *_impossible(value)]
    if findings:
        return [f"{of}: {finding}" for finding in findings]
    described = read(NetworkValue, value, of=of)
    endpoint = described.endpoint
    return Network(
        endpoint=Endpoint(endpoint.host, endpoint.port) if endpoint else None,
        failure_domains=tuple(
            FailureDomain(domain.name, domain.control_plane, domain.attributes)
            for domain in described.failure_domains
        ),
        spec=described.spec,
    )


def _malformed(value: JsonValue) -> Iterator[Finding]:
    """Yield violations of the schema; a misspelled field is an error, because it would be lost."""
    for finding in validate(schema_of(NetworkValue), value):
        yield finding._replace(problem=finding.problem.replace(NO_EFFECT, ""))


def _impossible(value: JsonValue) -> Iterator[Finding]:
    """Yield problems that the schema cannot express, in the well-formed parts."""
    endpoint = map_at(value, "endpoint") if isinstance(value, dict) else {}
    host = endpoint.get("host")
    if isinstance(host, str) and host and (problem := host_problem(host)):
        yield Finding("endpoint.host", problem)
    domains = maps_at(value, "failureDomains") if isinstance(value, dict) else []
    names = [domain["name"] for domain in domains if isinstance(domain.get("name"), str)]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Finding("failureDomains", f'name "{name}" appears more than once')
    if isinstance(value, dict) and ENDPOINT in map_at(value, "spec"):
        yield Finding(f"spec.{ENDPOINT}", "must be written as endpoint instead")
