"""The webhook that protects CustomResourceDefinitions and extension objects from deletion."""

from typing import Final

from hypothesis import strategies as st

from conformance.strategies.kubernetes import some
from conformance.subjects.webhooks import WebhookSubject, asked
from pergola.admission.review import GroupVersionResource
from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.deletion_protection import PATH, PROTECTED

_OTHER: Final = GroupVersionResource("apps", "v1", "deployments")
_CLUSTER_SCOPED: Final = ("CustomResourceDefinition", "BackupBucket", "BackupEntry")
_NAMES: Final = ("a", "b", "c")
_METADATA: Final = some(
    {
        "annotations": some(
            {
                marks.CONFIRMATION_DELETION: st.sampled_from(
                    ["true", "false", "", "1", "T", "TRUE", "yes", " true"]
                )
            }
        ),
        "labels": some({marks.DELETION_PROTECTED: st.sampled_from(["true", "false"])}),
    }
)


def _object(resource: GroupVersionResource, name: str, metadata: JsonObject) -> JsonObject:
    kind = PROTECTED.get(resource, "Deployment")
    place = {} if kind in _CLUSTER_SCOPED else {"namespace": "n"}
    obj: JsonObject = {
        "apiVersion": f"{resource.group}/{resource.version}",
        "kind": kind,
        "metadata": {"name": name, **place, **metadata},
    }
    return obj


def _question(parts: tuple[GroupVersionResource, list[JsonObject], bool, str]) -> JsonObject:
    """Ask about the first of some stored objects: alone, or as one of a collection."""
    resource, metadata, is_collection, operation = parts
    stored = [_object(resource, name, each) for name, each in zip(_NAMES, metadata, strict=False)]
    obj = stored[0]
    if resource.resource == "customresourcedefinitions":  # the others are not reviewed
        obj["metadata"]["labels"] = {marks.DELETION_PROTECTED: "true"}
    review: JsonObject = {
        "uid": "1",
        "kind": {"group": resource.group, "version": resource.version, "kind": obj["kind"]},
        "resource": resource._asdict(),
        "operation": operation,
        "userInfo": {},
        "oldObject": obj,
    }
    if not is_collection:
        review["name"] = obj["metadata"]["name"]
    if "namespace" in obj["metadata"]:
        review["namespace"] = obj["metadata"]["namespace"]
    return asked((PATH, "crdDeletionProtection"), {}, stored, review, source=stored)


PROTECTED_SUBJECT: Final = WebhookSubject(
    "deletions",
    "Webhook against deletion",
    ("pergola.resource_manager.webhooks.deletion_protection",),
    st.tuples(
        st.sampled_from([*PROTECTED, _OTHER]),
        st.lists(_METADATA, min_size=1, max_size=len(_NAMES)),
        st.booleans(),
        st.sampled_from(["DELETE", "DELETE", "DELETE", "UPDATE"]),
    ).map(_question),
)
"""The subject."""
