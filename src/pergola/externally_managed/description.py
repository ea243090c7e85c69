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

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta
from msgspec import field as value_field

from pergola.api.objects import JsonObject, JsonValue
from pergola.api.schema import Finding, Value, read, schema_of, validate
from pergola.externally_managed.contract import Endpoint, FailureDomain
from pergola.externally_managed.ownership import ENDPOINT


class EndpointValue(Value):
    """Where the control plane is reached."""

    host: Annotated[str, Meta(min_length=1, max_length=512)]
    """A DNS name or an address."""
    port: Annotated[int, Meta(ge=1, le=65535)]
    """The port."""


class DomainValue(Value):
    """A part of the infrastructure that fails on its own."""

    name: Annotated[str, Meta(min_length=1)]
    """Its name."""
    control_plane: bool = True
    """Whether control planes may be there."""
    attributes: dict[str, str] = {}  # noqa: RUF012 - Structs copy an empty default
    """What its provider wants to know of it."""


class NetworkValue(Value):
    """A network that exists."""

    endpoint: EndpointValue | None = None
    """Where the control plane is reached; may be given on the InfraCluster instead."""
    failure_domains: list[DomainValue] = []  # noqa: RUF012 - Structs copy an empty default
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
    """A description, or all that is wrong with it: one sentence each, with its path.

    Args:
        of: where it is from, such as `ConfigMap demo/net`.
    """
    findings = [f for f in validate(schema_of(NetworkValue), value) if f.severity == "error"]
    if findings:
        return [_sentence(finding, of) for finding in findings]
    said = read(NetworkValue, value, of=of)
    names = [domain.name for domain in said.failure_domains]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        return [f"{of}: failureDomains: {', '.join(twice)} is there more than once"]
    if ENDPOINT in said.spec:
        return [f"{of}: spec.{ENDPOINT}: write it as endpoint instead"]
    return Network(
        endpoint=Endpoint(said.endpoint.host, said.endpoint.port) if said.endpoint else None,
        failure_domains=tuple(
            FailureDomain(domain.name, domain.control_plane, domain.attributes)
            for domain in said.failure_domains
        ),
        spec=said.spec,
    )


def _sentence(finding: Finding, of: str) -> str:
    return f"{of}: {finding}"
