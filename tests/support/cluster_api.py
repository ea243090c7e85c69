"""InfraCluster kinds of both contract generations, and the AWS provider's own (spec 50 §4.1).

For tests of code that reads or fills InfraClusters. `OldCluster` follows the contract v1beta1,
`NewCluster` v1beta2; both store their own API version of that name. Their status is as strict as
that of real providers: an empty message or a missing reason is refused. Their spec takes anything
but a malformed endpoint.
"""

import asyncio
from pathlib import Path
from typing import Final

from pergola.api.cluster_api import (
    CLUSTER,
    INFRASTRUCTURE_GROUP,
    contract_label,
    crd_name,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, ApiError, NotFound, UnknownKind
from pergola.kube.yaml import parse
from pergola.sandbox import binaries
from pergola.sandbox.module import CLUSTER_API_AWS_CONFIG
from pergola.testing.crds import definition

OLD: Final = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta1", "OldCluster")
NEW: Final = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta2", "NewCluster")
_READY_SECONDS: Final = 180.0
_TEXT: Final[JsonObject] = {"type": "string"}
_TIME: Final[JsonObject] = {"type": "string", "format": "date-time"}
_FLAG: Final[JsonObject] = {"type": "boolean"}
_TEXTS: Final[JsonObject] = {"type": "object", "additionalProperties": _TEXT}


def infra_cluster_crd(gvk: GroupVersionKind) -> JsonObject:
    """Return the CRD of a kind whose API version has the name of its contract."""
    crd = untyped_infra_cluster_crd(gvk)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = infra_cluster_schema(gvk.version)
    return crd


def untyped_infra_cluster_crd(gvk: GroupVersionKind) -> JsonObject:
    """Return the same CRD without a schema, so that the API server accepts values of any type."""
    crd = _crd(gvk)
    crd["metadata"]["labels"] = {contract_label(gvk.version): gvk.version}
    return crd


def infra_cluster_schema(contract: str) -> JsonObject:
    """Return the schema of an InfraCluster, as strict as real providers of a contract are."""
    is_old = contract == "v1beta1"
    endpoint = _OLD_ENDPOINT if is_old else _NEW_ENDPOINT
    spec = _object({"controlPlaneEndpoint": endpoint})
    spec["x-kubernetes-preserve-unknown-fields"] = True
    return _object({"spec": spec, "status": _OLD_STATUS if is_old else _NEW_STATUS})


async def aws_provider_crds() -> list[JsonObject]:
    """Return the real CRDs of AWSCluster and AWSMachineTemplate, labelled as in a release.

    Raises:
        SandboxError: they cannot be downloaded.
    """
    found = await asyncio.to_thread(binaries.find, (CLUSTER_API_AWS_CONFIG,))
    folder = found[CLUSTER_API_AWS_CONFIG] / "crd"
    labels = _yaml(folder / "kustomization.yaml")["commonLabels"]
    crds = [
        _yaml(folder / "bases" / f"{INFRASTRUCTURE_GROUP}_{plural}.yaml")
        for plural in ("awsclusters", "awsmachinetemplates")
    ]
    return [{**crd, "metadata": {**crd["metadata"], "labels": labels}} for crd in crds]


def cluster_crd() -> JsonObject:
    """Return a Cluster CRD without a schema, for tests without Cluster API's own controllers."""
    return _crd(CLUSTER)


async def install(client: Client, *crds: JsonObject) -> None:
    """Install missing CRDs; return when their kinds are served."""
    for crd in crds:
        try:
            await client.create(crd)
        except AlreadyExists:
            continue
    async with asyncio.timeout(_READY_SECONDS):
        for crd in crds:
            await _served(client, crd)


def cluster(name: str, namespace: str, infra: GroupVersionKind, **spec: object) -> JsonObject:
    """Return a Cluster whose infrastructure is an object of the same name."""
    return {
        "apiVersion": CLUSTER.api_version,
        "kind": CLUSTER.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "infrastructureRef": {"apiGroup": infra.group, "kind": infra.kind, "name": name},
            **spec,
        },
    }


def infra_cluster(
    gvk: GroupVersionKind,
    name: str,
    namespace: str,
    annotations: dict[str, str] | None = None,
    **spec: object,
) -> JsonObject:
    """Return an InfraCluster that belongs to the Cluster of its name."""
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": annotations or {},
            "labels": {"cluster.x-k8s.io/cluster-name": name},
        },
        "spec": spec,
    }


def _yaml(file: Path) -> JsonObject:
    value = parse(file.read_bytes())
    if not isinstance(value, dict):
        raise AssertionError(f"{file} is not a map")
    return value


def _object(properties: JsonObject, *required: str) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(required)}


_OLD_ENDPOINT: Final = _object(
    {
        "host": {"type": "string", "maxLength": 512},
        "port": {"type": "integer", "format": "int32"},
    },
    "host",
    "port",
)
_NEW_ENDPOINT: Final = {
    **_object(
        {
            "host": {"type": "string", "minLength": 1, "maxLength": 512},
            "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
        }
    ),
    "minProperties": 1,
}
_OLD_CONDITION: Final = _object(
    {
        "type": {"type": "string", "minLength": 1, "maxLength": 256},
        "status": _TEXT,
        "severity": {"type": "string", "maxLength": 32},
        "reason": {"type": "string", "minLength": 1, "maxLength": 256},
        "message": {"type": "string", "minLength": 1, "maxLength": 10240},
        "lastTransitionTime": _TIME,
    },
    "type",
    "status",
    "lastTransitionTime",
)
_NEW_CONDITION: Final = _object(
    {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {"type": "string", "maxLength": 32768},
        "lastTransitionTime": _TIME,
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    },
    "type",
    "status",
    "reason",
    "message",
    "lastTransitionTime",
)
_OLD_STATUS: Final = _object(
    {
        "ready": {**_FLAG, "default": False},
        "failureDomains": {
            "type": "object",
            "additionalProperties": _object({"controlPlane": _FLAG, "attributes": _TEXTS}),
        },
        "failureReason": _TEXT,
        "failureMessage": _TEXT,
        "conditions": {"type": "array", "items": _OLD_CONDITION},
    },
    "ready",
)
_NEW_STATUS: Final = {
    **_object(
        {
            "initialization": {**_object({"provisioned": _FLAG}), "minProperties": 1},
            "failureDomains": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "items": _object(
                    {
                        "name": {"type": "string", "minLength": 1, "maxLength": 256},
                        "controlPlane": _FLAG,
                        "attributes": _TEXTS,
                    },
                    "name",
                ),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "conditions": {
                "type": "array",
                "maxItems": 32,
                "items": _NEW_CONDITION,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        }
    ),
    "minProperties": 1,
}


def _crd(gvk: GroupVersionKind) -> JsonObject:
    crd = definition(gvk)
    if crd["metadata"]["name"] != crd_name(gvk.group_kind):
        raise AssertionError("core would not find a kind of this name")
    crd["spec"]["versions"][0]["subresources"] = {"status": {}}
    return crd


async def _served(client: Client, crd: JsonObject) -> None:
    """Return when the kind is served; a CRD that was just established may answer 429."""
    spec = crd["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    gvk = GroupVersionKind(spec["group"], version, spec["names"]["kind"])
    while True:
        try:
            await client.get(gvk, Key("default", "none"))
        except NotFound:
            return
        except (UnknownKind, ApiError):
            client.discovery.forget(gvk)
            await client.get_raw("/version")
