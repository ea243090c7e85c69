"""Validation of selectors and tolerations beyond their schema, as in Kubernetes."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.core_v1 import LabelSelector, LabelSelectorRequirement, Toleration
from pergola.api.schema.validate import Finding, child, item

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
_NOT_A_KEY: Final = 'must be a label key like "example.org/name"'
_NOT_A_VALUE: Final = (
    "must be a label value: at most 63 letters, digits, dots, dashes and underscores, "
    "with a letter or digit at both ends"
)


def is_label_value(text: str) -> bool:
    """Return whether a label can have this value, which may be empty."""
    return not text or _NAME.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Return whether a label can have this name, with or without a domain as prefix."""
    domain, slash, name = text.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or is_dns_subdomain(domain))


def is_dns_subdomain(text: str) -> bool:
    """Return whether most objects can have this name; only its total length is limited."""
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_dns_label(text: str) -> bool:
    """Return whether a namespace can have this name."""
    return _DNS_LABEL.fullmatch(text) is not None


def label_value_findings(value: str, path: str) -> Iterator[Finding]:
    """Yield the findings about a label's value."""
    if not is_label_value(value):
        yield Finding(path, _NOT_A_VALUE)


def label_findings(labels: dict[str, str], path: str) -> Iterator[Finding]:
    """Yield the findings about a map of labels."""
    for key, value in labels.items():
        if not is_label_key(key):
            yield Finding(item(path, key), _NOT_A_KEY)
        yield from label_value_findings(value, item(path, key))


def selector_findings(selector: LabelSelector, path: str) -> Iterator[Finding]:
    """Yield the findings about a label selector."""
    yield from label_findings(selector.match_labels, child(path, "matchLabels"))
    for index, requirement in enumerate(selector.match_expressions):
        at = item(child(path, "matchExpressions"), index)
        yield from _requirement_findings(requirement, at)


def _requirement_findings(requirement: LabelSelectorRequirement, path: str) -> Iterator[Finding]:
    if not is_label_key(requirement.key):
        yield Finding(child(path, "key"), _NOT_A_KEY)
    takes_values = requirement.operator in ("In", "NotIn")
    if takes_values and not requirement.values:
        yield Finding(child(path, "values"), f"must not be empty for {requirement.operator}")
    if not takes_values and requirement.values:
        yield Finding(child(path, "values"), f"must be empty for {requirement.operator}")
    for index, value in enumerate(requirement.values):
        yield from label_value_findings(value, item(child(path, "values"), index))


def toleration_findings(toleration: Toleration, path: str) -> Iterator[Finding]:
    """Yield the findings about a toleration."""
    exists = toleration.operator == "Exists"
    if toleration.key and not is_label_key(toleration.key):
        yield Finding(child(path, "key"), _NOT_A_KEY)
    if not toleration.key and not exists:
        yield Finding(child(path, "operator"), "must be Exists if there is no key")
    if exists and toleration.value:
        yield Finding(child(path, "value"), "must be empty for Exists")
    if not exists:
        yield from label_value_findings(toleration.value, child(path, "value"))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield Finding(child(path, "effect"), "must be NoExecute if tolerationSeconds is set")
