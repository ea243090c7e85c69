"""Labels, annotations and data keys by which clients and controller agree (spec 11 §1.2)."""

from typing import Final

# ruff: noqa: S105 - these are names, no secrets

PURPOSE: Final = "resources.gardener.cloud/purpose"
PURPOSE_TOKEN_REQUESTOR: Final = "token-requestor"
CLASS: Final = "resources.gardener.cloud/class"
DEFAULT_CLASS: Final = "shoot"
ALL_CLASSES: Final = "*"

NAME: Final = "serviceaccount.resources.gardener.cloud/name"
NAMESPACE: Final = "serviceaccount.resources.gardener.cloud/namespace"
LABELS: Final = "serviceaccount.resources.gardener.cloud/labels"
"""On a ServiceAccount the same annotation records which labels were set."""
EXPIRATION: Final = "serviceaccount.resources.gardener.cloud/token-expiration-duration"
INJECT_CA: Final = "serviceaccount.resources.gardener.cloud/inject-ca-bundle"
RENEW: Final = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
SKIP_DELETION: Final = "serviceaccount.resources.gardener.cloud/skip-deletion"
"""Written by old clients; means nothing any more."""
TARGET_NAME: Final = "token-requestor.resources.gardener.cloud/target-secret-name"
TARGET_NAMESPACE: Final = "token-requestor.resources.gardener.cloud/target-secret-namespace"

KEY_TOKEN: Final = "token"
KEY_KUBECONFIG: Final = "kubeconfig"
KEY_CA: Final = "bundle.crt"


def is_relevant(labels: dict[str, str], resource_class: str) -> bool:
    """Whether a Secret is for the instance of a class; the class is compared exactly."""
    if labels.get(PURPOSE) != PURPOSE_TOKEN_REQUESTOR:
        return False
    return resource_class == ALL_CLASSES or labels.get(CLASS) == resource_class


def selector(resource_class: str) -> str:
    """The same as a label selector for the API server."""
    purpose = f"{PURPOSE}={PURPOSE_TOKEN_REQUESTOR}"
    return purpose if resource_class == ALL_CLASSES else f"{purpose},{CLASS}={resource_class}"
