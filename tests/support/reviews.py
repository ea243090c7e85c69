"""Admission requests like those of an API server, made from objects."""

from typing import Any

from pergola.admission.review import (
    GroupVersionResource,
    Handler,
    Operation,
    Request,
    Verdict,
)
from pergola.api.objects import GroupVersionKind, JsonObject, name_of, namespace_of
from pergola.resource_manager.webhooks.explanation import applied, reviewed_kind


def review_of(
    obj: JsonObject, operation: Operation = "CREATE", *, namespace: str = "", **fields: Any
) -> Request:
    """Return the request with which an API server would send an object for review.

    Args:
        namespace: the namespace of the request; by default the object's own.
        fields: extra fields of the request.
    """
    gvk = GroupVersionKind.of(obj)
    kind = reviewed_kind(gvk)
    plural = kind.plural if kind else f"{gvk.kind.lower()}s"
    values: dict[str, Any] = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "operation": operation,
        "kind": gvk,
        "resource": GroupVersionResource(gvk.group, gvk.version, plural),
        "namespace": namespace or namespace_of(obj),
        "name": name_of(obj),
        "object": None if operation == "DELETE" else obj,
        "old_object": None if operation == "CREATE" else obj,
    }
    return Request(**values | fields)


async def answer(handler: Handler, request: Request) -> Verdict:
    """Return the verdict of a handler, synchronous or not."""
    verdict = handler(request)
    return verdict if isinstance(verdict, Verdict) else await verdict


def patched(obj: JsonObject, verdict: Verdict) -> JsonObject:
    """Return the object as it is stored after an allowed request."""
    assert verdict.allowed, verdict.message
    return applied(obj, verdict.edits)


def pod(*, metadata: JsonObject | None = None, **spec: Any) -> JsonObject:
    """Return a pod with one container, unless `containers` are given."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "kube-system", **(metadata or {})},
        "spec": {"containers": [{"name": "app", "image": "web"}], **spec},
    }
