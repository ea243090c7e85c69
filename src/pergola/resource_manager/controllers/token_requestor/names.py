"""Labels, annotations and data keys of the contract with clients (spec 11 §1.2)."""

from typing import Final

# ruff: noqa: S105 - these are names, not secrets

PURPOSE: Final = "resources.gardener.cloud/purpose"
PURPOSE_TOKEN_REQUESTOR: Final = "token-requestor"
CLASS: Final = "resources.gardener.cloud/class"
DEFAULT_CLASS: Final = "shoot"
ALL_CLASSES: Final = "*"

NAME: Final = "serviceaccount.resources.gardener.cloud/name"
NAMESPACE: Final = "serviceaccount.resources.gardener.cloud/namespace"
LABELS: Final = "serviceaccount.resources.gardener.cloud/labels"
"""On a ServiceAccount, this annotation records the labels that were set."""
EXPIRATION: Final = "serviceaccount.resources.gardener.cloud/token-expiration-duration"
INJECT_CA: Final = "serviceaccount.resources.gardener.cloud/inject-ca-bundle"
RENEW: Final = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
TARGET_NAME: Final = "token-requestor.resources.gardener.cloud/target-secret-name"
TARGET_NAMESPACE: Final = "token-requestor.resources.gardener.cloud/target-secret-namespace"

KEY_TOKEN: Final = "token"
KEY_KUBECONFIG: Final = "kubeconfig"
KEY_CA: Final = "bundle.crt"


def is_relevant(labels: dict[str, str], resource_class: str) -> bool:
    """Return whether an instance of a class serves a Secret; classes are compared exactly."""
    if labels.get(PURPOSE) != PURPOSE_TOKEN_REQUESTOR:
        return False
    return resource_class == ALL_CLASSES or labels.get(CLASS) == resource_class


def selector(resource_class: str) -> str:
    """Return the label selector for the Secrets of a class."""
    purpose = f"{PURPOSE}={PURPOSE_TOKEN_REQUESTOR}"
    return purpose if resource_class == ALL_CLASSES else f"{purpose},{CLASS}={resource_class}"
