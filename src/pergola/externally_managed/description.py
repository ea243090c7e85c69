"""A network as it is: what an external manager fills into an InfraCluster (spec 50 §5).

A plain description, in a ConfigMap or Secret under the key `network.yaml`, looks like this:

    endpoint: {host: api.demo.example.org, port: 6443}
    failureDomains:
    - name: zone-a
      attributes: {rack: r1}
    - name: zone-b
      controlPlane: false
    spec:            # further fields of the InfraCluster's spec, as its provider defines them
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
    """Where the control plane is reached."""

    host: Annotated[str, Meta(min_length=1, max_length=512)]
    """A DNS name or an address."""
    port: Annotated[int, Meta(ge=1, le=65535)]
    """The port."""


class DomainValue(Value):
    """A part of the infrastructure that fails on its own."""

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    """Its name."""
    control_plane: bool = True
    """Whether control planes may be there."""
    attributes: dict[str, str] = {}  # noqa: RUF012 - Structs copy an empty default
    """What its provider wants to know of it."""


class NetworkValue(Value):
    """A network that exists."""

    endpoint: EndpointValue | None = None
    """Where the control plane is reached; may be given on the InfraCluster instead."""
    failure_domains: Annotated[list[DomainValue], Meta(max_length=100)] = []  # noqa: RUF012 - Structs copy an empty default
    """What fails on its own."""
    spec: JsonObject = value_field(default_factory=dict)
    """Further fields of the InfraCluster's spec."""


@dataclass(frozen=True, slots=True)
class Network:
    """What a source says of a network.

    Attributes:
        spec: of the InfraCluster, as far as the source knows it; without the endpoint.
        status: further fields of its status.
        problems: what is missing in the network, one sentence each; then it is not ready.
    """

    endpoint: Endpoint | None = None
    failure_domains: tuple[FailureDomain, ...] = ()
    spec: JsonObject = field(default_factory=dict)
    status: JsonObject = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def desired_spec(self) -> JsonObject:
        """The spec that the InfraCluster should have."""
        if self.endpoint is None:
            return self.spec
        return {**self.spec, ENDPOINT: {"host": self.endpoint.host, "port": self.endpoint.port}}


def read_network(value: JsonValue, of: str) -> Network | list[str]:
    """Return the described network, or everything that is wrong with it: a sentence each.

    Args:
        of: where the description is, such as `ConfigMap demo/net`.
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
    """Find what the schema does not allow; a misspelt field is an error, it would be lost."""
    for finding in validate(schema_of(NetworkValue), value):
        yield finding._replace(problem=finding.problem.replace(NO_EFFECT, ""))


def _impossible(value: JsonValue) -> Iterator[Finding]:
    """Find what the schema cannot express, in whatever is well formed."""
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
