"""Rules about names and namespaces of objects."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    map_at,
    name_of,
    namespace_of,
)
from pergola.bundle.lint.manifests import CRON_JOB, Finding, Manifests

_RBAC: Final = "rbac.authorization.k8s.io"
_CRD: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_LONGEST_NAME: Final = 253
# Parts between dots may exceed the 63 characters of DNS labels.
_NAME_PART: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
# A Service's name is a part of a DNS name; a CronJob's Job has a name with 11 more characters.
_LABELS: Final = {GroupKind("", "Service"): 63, GroupKind("", "Namespace"): 63}
_SHORT: Final = {CRON_JOB: 52}
_GROUPS: Final = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        _RBAC,
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
_CLUSTER_SCOPED: Final = frozenset(
    {
        GroupKind("", "Namespace"),
        GroupKind("", "Node"),
        GroupKind("", "PersistentVolume"),
        GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        _CRD,
        GroupKind("apiregistration.k8s.io", "APIService"),
        GroupKind("certificates.k8s.io", "CertificateSigningRequest"),
        GroupKind("certificates.k8s.io", "ClusterTrustBundle"),
        GroupKind("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        GroupKind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        GroupKind("networking.k8s.io", "IPAddress"),
        GroupKind("networking.k8s.io", "IngressClass"),
        GroupKind("networking.k8s.io", "ServiceCIDR"),
        GroupKind("node.k8s.io", "RuntimeClass"),
        GroupKind(_RBAC, "ClusterRole"),
        GroupKind(_RBAC, "ClusterRoleBinding"),
        GroupKind("scheduling.k8s.io", "PriorityClass"),
        GroupKind("storage.k8s.io", "CSIDriver"),
        GroupKind("storage.k8s.io", "CSINode"),
        GroupKind("storage.k8s.io", "StorageClass"),
        GroupKind("storage.k8s.io", "VolumeAttachment"),
        GroupKind("storage.k8s.io", "VolumeAttributesClass"),
    }
)


def unique_object(manifests: Manifests) -> Iterator[Finding]:
    """Check that no object is described twice, even in different API versions."""
    seen: set[tuple[GroupKind, Key]] = set()
    for obj in manifests.objects:
        identity = GroupVersionKind.of(obj).group_kind, Key.of(obj)
        if identity in seen:
            yield Finding(obj, "", "is described twice; keep one of the two")
        seen.add(identity)


def valid_name(manifests: Manifests) -> Iterator[Finding]:
    """Check that objects have an API version, a kind and a name that the API server accepts."""
    for obj in manifests.objects:
        gvk = GroupVersionKind.of(obj)
        for field, value in (("apiVersion", gvk.version), ("kind", gvk.kind)):
            if not value:
                yield Finding(obj, field, "is missing")
        if problem := _problem_of_name(name_of(obj), gvk.group_kind):
            yield Finding(obj, "metadata.name", problem)


def known_namespace(manifests: Manifests) -> Iterator[Finding]:
    """Check that objects set a namespace if and only if their kind is namespaced."""
    scopes = _scopes(manifests)
    for obj in manifests.objects:
        namespaced = scopes.get(kind := GroupVersionKind.of(obj).group_kind, _is_namespaced(kind))
        if namespaced is True and not namespace_of(obj):
            yield Finding(obj, "metadata.namespace", "is missing; set the namespace")
        if namespaced is False and namespace_of(obj):
            yield Finding(obj, "metadata.namespace", f"a {kind.kind} is cluster-scoped; remove it")


def _problem_of_name(name: str, kind: GroupKind) -> str:
    if not name:
        return "is missing"
    if kind.group == _RBAC:
        # The only kinds whose names are not parts of DNS names.
        bad = name in (".", "..") or "/" in name or "%" in name
        return "must not contain / or %, nor be . or .." if bad else ""
    longest = _LABELS.get(kind) or _SHORT.get(kind, _LONGEST_NAME)
    if len(name) > longest:
        return f"has {len(name)} characters; a {kind.kind} may have {longest}"
    parts = [name] if kind in _LABELS else name.split(".")
    if not all(map(_NAME_PART.fullmatch, parts)):
        dots = "" if kind in _LABELS else ", and dots"
        return f"must consist of lower-case letters, digits and, between them, hyphens{dots}"
    return ""


def _is_namespaced(kind: GroupKind) -> bool | None:
    """Return whether a kind is namespaced; None for unknown kinds of other groups."""
    return kind not in _CLUSTER_SCOPED if kind.group in _GROUPS else None


def _scopes(manifests: Manifests) -> dict[GroupKind, bool]:
    """Return, for each kind that the manifests define, whether it is namespaced."""
    return {_defined_kind(crd): _scope(crd) == "Namespaced" for crd in manifests.of_kind(_CRD)}


def _defined_kind(crd: JsonObject) -> GroupKind:
    spec = map_at(crd, "spec")
    return GroupKind(str(spec.get("group")), str(map_at(spec, "names").get("kind")))


def _scope(crd: JsonObject) -> object:
    return map_at(crd, "spec").get("scope")
