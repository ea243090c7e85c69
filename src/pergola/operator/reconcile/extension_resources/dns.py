"""The DNSRecords of a garden: the names that point to its ingress gateway (spec 20 §15.3)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pergola.api.ip_ranges import parse_address
from pergola.api.marks import EXPLICIT_DNS_RECORDS, is_truthy
from pergola.api.objects import JsonObject, annotations_of, name_of, without_nulls
from pergola.api.operator_v1alpha1.facets import DnsDomain
from pergola.api.operator_v1alpha1.garden import DnsProvider
from pergola.extension_api.kinds import DNS_RECORD
from pergola.garden.components.basic_auth_server import HOSTS
from pergola.garden.components.gardener_dashboard.settings import hosts as dashboard_hosts
from pergola.garden.components.observability.conventions import host
from pergola.garden.components.workload_identity import discovery_host
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.operator.reconcile.extension_resources.inputs import (
    garden_resource,
    referenced,
    secret_reference,
)

ORIGIN: Final = {"origin": "gardener-operator"}
"""The labels of the DNSRecords that the operator creates."""

_ANY: Final = "*."
_BY_VERSION: Final = {4: "A", 6: "AAAA"}


def absent(landscape: Landscape) -> str | None:
    """Return why the operator manages no DNSRecords, or None if it does."""
    return None if landscape.garden.spec.dns else "spec.dns is not set"


def dns_records(landscape: Landscape, address: str) -> list[JsonObject]:
    """Return the DNSRecords of a Garden with `spec.dns`, ordered by name.

    Args:
        address: of the ingress gateway: an IP address or a host name.

    Raises:
        OperatorError: A domain names an unknown provider, or two names need the same object.
    """
    records: dict[str, JsonObject] = {}
    for dns_name, provider in sorted(_names(landscape).items()):
        record = _record(landscape, dns_name, _provider(landscape, dns_name, provider), address)
        other = records.setdefault(name_of(record), record)
        if other is not record:
            raise OperatorError(
                f"the DNS names {other['spec']['name']} and {dns_name} both need DNSRecord "
                f"{name_of(record)}: rename one of these domains of the Garden"
            )
    return list(records.values())


def record_type(address: str) -> str:
    """Return the DNS record type for a value."""
    try:
        return _BY_VERSION[parse_address(address).version]
    except ValueError:
        return "CNAME"


def _names(landscape: Landscape) -> Mapping[str, str | None]:
    """Return the DNS names with their providers' names; the first mention of a name counts."""
    names: dict[str, str | None] = {}
    for domain in landscape.virtual.dns.domains:
        names.setdefault(f"api.{domain.name}", domain.provider)
        names.setdefault(f"gardener.{domain.name}", domain.provider)
    for domain in landscape.runtime.ingress.domains:
        names.setdefault(f"{_ANY}{domain.name}", domain.provider)
    for domain in _own_domains(landscape):
        if not is_covered(domain.name, list(names)):
            names.setdefault(domain.name, domain.provider)
    if is_truthy(annotations_of({"metadata": landscape.garden.metadata}).get(EXPLICIT_DNS_RECORDS)):
        for name in ingress_hosts(landscape):
            names.setdefault(name, _provider_of_ingress(landscape, name))
    return names


def ingress_hosts(landscape: Landscape) -> Iterator[str]:
    """Yield the component host names below ingress domains.

    An annotation of the Garden requests a record for each, in addition to the wildcard. An ACME
    challenge is a TXT record below such a name, and hides the name from the wildcard while it
    exists.
    """
    gardener = landscape.virtual.gardener
    hosts = [host(landscape, name) for name in HOSTS]
    if gardener.dashboard is not None and gardener.dashboard.ingress.enabled:
        hosts += dashboard_hosts(landscape)
    if gardener.discovery_server is not None:
        hosts.append(discovery_host(landscape))
    domains = tuple(f".{domain.name}" for domain in landscape.runtime.ingress.domains)
    yield from (each for each in hosts if each.endswith(domains))


def is_covered(name: str, records: Sequence[str]) -> bool:
    """Return whether these records resolve a name, exactly or through a wildcard.

    A wildcard resolves all names below it, at any depth, except those below another name that
    exists (RFC 4592). So a record hides the names below it from the wildcard above it.
    """
    if name in records:
        return True
    _, _, parent = name.partition(".")
    while parent:
        if any(each == parent or each.endswith(f".{parent}") for each in records):
            return f"{_ANY}{parent}" in records
        _, _, parent = parent.partition(".")
    return False


def _own_domains(landscape: Landscape) -> Iterator[DnsDomain]:
    """Yield the custom domains of components, used instead of names below an ingress domain."""
    dashboard = landscape.virtual.gardener.dashboard
    if dashboard is not None and dashboard.domain is not None and dashboard.ingress.enabled:
        yield dashboard.domain
    server = landscape.virtual.gardener.discovery_server
    if server is not None and server.domain is not None:
        yield server.domain


def _provider_of_ingress(landscape: Landscape, host: str) -> str | None:
    """Return the provider of the innermost ingress domain above a host."""
    above = [each for each in landscape.runtime.ingress.domains if host.endswith(f".{each.name}")]
    return max(above, key=lambda domain: len(domain.name)).provider


def _provider(landscape: Landscape, dns_name: str, name: str | None) -> DnsProvider:
    """Return the provider of a DNS name; the first one if its domain names none."""
    dns = landscape.garden.spec.dns
    providers = dns.providers if dns else []
    for provider in providers:
        if name is None or provider.name == name:
            return provider
    known = ", ".join(f'"{each.name}"' for each in providers) or "none"
    raise OperatorError(
        f'the domain of {dns_name} names the DNS provider "{name}", which spec.dns.providers does '
        f"not have (it has {known}): add it, or name another one"
    )


def _record(landscape: Landscape, dns_name: str, provider: DnsProvider, address: str) -> JsonObject:
    name = dns_name.replace(".", "-").replace("*", "wildcard")
    spec: JsonObject = {
        "type": provider.type,
        "name": dns_name,
        "recordType": record_type(address),
        "values": [address],
        "secretRef": secret_reference(provider.secret_ref.name),
    }
    if provider.provider_config is not None:
        spec["providerConfig"] = without_nulls(provider.provider_config)
    return garden_resource(
        DNS_RECORD,
        f"{name}-{provider.type}",
        spec,
        labels=ORIGIN,
        inputs=referenced(landscape, provider.secret_ref.name),
    )
