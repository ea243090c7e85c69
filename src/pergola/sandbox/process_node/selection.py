"""Assignment of pods to a process node: by their images, in one namespace or all.

A MutatingAdmissionPolicy labels them when they are created; kwok leaves labelled pods alone.
"""

import asyncio
import json
from collections.abc import Iterable
from typing import Final

from pergola.api.objects import JsonObject, labels_of
from pergola.kube.client import Client
from pergola.kube.errors import ApiError
from pergola.manifests import manifest

LABEL: Final = "sandbox.pergola.dev/process"
"""The label of the pods that processes run; kwok's configuration names it, too."""

_NAME: Final = "sandbox-processes"
_API: Final = "admissionregistration.k8s.io/v1"
_PATIENCE: Final = 30.0


async def apply_selection(
    client: Client, namespace: str | None, repositories: Iterable[str]
) -> None:
    """Apply the policy, and return when the API server labels the pods of these repositories.

    Args:
        namespace: of the pods; None for all namespaces.

    Raises:
        KubeError: the API server refused it.
    """
    repositories = list(repositories)
    for obj in _policy(namespace, repositories):
        await client.apply(obj, manager=_NAME, force=True)
    async with asyncio.timeout(_PATIENCE):
        while not await _is_active(client, namespace or "default", repositories[0]):
            await client.get_raw("/version")


async def _is_active(client: Client, namespace: str, repository: str) -> bool:
    container = {"name": "probe", "image": f"{repository}:probe"}
    probe = manifest("v1", "Pod", "probe", namespace=namespace, spec={"containers": [container]})
    try:
        return LABEL in labels_of(await client.create(probe, dry_run=True))
    except ApiError:  # the ServiceAccount of a new namespace does not exist yet
        return False


def _policy(namespace: str | None, repositories: list[str]) -> tuple[JsonObject, JsonObject]:
    is_known = "[':', '@'].exists(end, c.image.startsWith(known + end))"
    known = f"{json.dumps(repositories)}.exists(known, {is_known})"
    labels = f'Object.metadata{{labels: {{"{LABEL}": "true"}}}}'
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}} if namespace else {}
    policy = manifest(
        _API,
        "MutatingAdmissionPolicy",
        _NAME,
        spec={
            "matchConstraints": {"namespaceSelector": here, "resourceRules": [pods]},
            "matchConditions": [
                {
                    "name": "has-a-known-image",
                    "expression": f"object.spec.containers.exists(c, {known})",
                }
            ],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": f"Object{{metadata: {labels}}}"},
                }
            ],
        },
    )
    binding = manifest(_API, "MutatingAdmissionPolicyBinding", _NAME, spec={"policyName": _NAME})
    return policy, binding
