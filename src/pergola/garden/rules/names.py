"""Rules about names in a Garden: domains, names of objects, URLs."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.field_errors import Cause, duplicate, invalid, required
from pergola.api.operator_v1alpha1.facets import DnsDomain
from pergola.api.operator_v1alpha1.garden import DnsManagement

_NOT_A_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com')"
)


def check_providers(dns: DnsManagement | None, path: str) -> Iterator[Cause]:
    """Yield the findings about the accounts with DNS providers."""
    seen: set[str] = set()
    for index, provider in enumerate(dns.providers if dns else ()):
        if provider.name in seen:
            yield duplicate(f"{path}.providers[{index}]", provider.name)
        seen.add(provider.name)


def check_domains(
    domains: list[DnsDomain], dns: DnsManagement | None, path: str
) -> Iterator[Cause]:
    """Yield the findings about a list of domains."""
    if not domains:
        yield required(path, "at least one domain is required")
    seen: set[str] = set()
    for index, domain in enumerate(domains):
        yield from check_domain(domain, dns, f"{path}[{index}]")
        if domain.name in seen:
            yield duplicate(f"{path}[{index}].name", domain.name)
        seen.add(domain.name)


def check_domain(domain: DnsDomain, dns: DnsManagement | None, path: str) -> Iterator[Cause]:
    """Yield the findings about one domain."""
    yield from check_subdomain(domain.name, f"{path}.name")
    if dns is None:
        if domain.provider:
            problem = "provider name not found in .spec.dns.providers"
            yield invalid(f"{path}.provider", domain.provider, problem)
        return
    if domain.provider is None:
        yield required(f"{path}.provider", "provider name must be set if `.spec.dns` is set")
    elif all(provider.name != domain.provider for provider in dns.providers):
        problem = "provider name not found in .spec.dns.providers"
        yield invalid(f"{path}.provider", domain.provider, problem)


def check_subdomain(name: str, path: str) -> Iterator[Cause]:
    """Yield a finding unless a name is valid as a domain or as the name of an object."""
    if not is_dns_subdomain(name):
        yield invalid(path, name, _NOT_A_SUBDOMAIN)


def check_issuer(url: str, path: str) -> Iterator[Cause]:
    """Yield the findings about the URL of a token issuer."""
    parts = _split(url)
    if parts is None or not parts.hostname:
        yield invalid(path, url, "must be a valid URL and have https scheme")
    if parts is None:
        return
    if parts.fragment:
        yield invalid(path, url, "must not contain a fragment")
    if parts.username is not None or parts.password is not None:
        yield invalid(path, url, "must not contain a username or password")
    if parts.query:
        yield invalid(path, url, "must not contain a query")
    if parts.scheme != "https":
        yield invalid(path, url, "must have https scheme")


def matches_pattern(domain: str, pattern: str) -> bool:
    """Return whether a pattern covers a domain; `*.` matches exactly one label."""
    if not pattern.startswith("*."):
        return domain == pattern
    label, dot, rest = domain.partition(".")
    return bool(label and dot) and rest == pattern.removeprefix("*.")


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None
