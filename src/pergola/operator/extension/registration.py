"""The registration of an Extension, with which gardenlets install it in Seeds (spec 21 §13.2.3)."""

from collections.abc import Mapping
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.manifests import manifest
from pergola.operator.chart_source import CA_BUNDLE, PULL_SECRET, secret_named
from pergola.operator.extension.deployments import Deployments
from pergola.operator.extension.errors import ExtensionFailed
from pergola.operator.extension.names import (
    EXTENSION_CHART,
    POD_SECURITY,
    chart_of,
    registration_resource,
)
from pergola.operator.extension.values import resolve

_GARDEN: Final = "garden"
_CLUSTERS: Final = ("autoEnable", "clusterCompatibility")
_CONTENT: Final = ("data", "binaryData", "type")


class RegistrationPart:
    """The registration of an Extension in the virtual cluster.

    Args:
        client: Of the runtime cluster.
    """

    def __init__(self, client: Client, deployments: Deployments) -> None:
        self._client = client
        self._deployments = deployments

    async def apply(self, extension: JsonObject) -> None:
        """Register the Extension, without waiting for the virtual cluster.

        Raises:
            ExtensionFailed: An object that it names is missing, or lacks its label or a key.
            KubeError: The API server refused, or did not answer.
        """
        secrets = await self._secrets(extension)
        values = map_at(extension, "spec", "deployment", "extension", "values")
        at = "spec.deployment.extension.values"
        resources = (await resolve(self._client, extension, values, at)).objects
        copies = {
            (obj["kind"], name_of(obj)): _copy(extension, obj)
            for obj in (*secrets.values(), *resources.values())
        }
        objects = [
            controller_registration(extension),
            controller_deployment(extension, secrets, resources),
            *copies.values(),
        ]
        await self._deployments.apply_for_virtual(
            registration_resource(name_of(extension)), objects
        )

    async def delete(self, name: str) -> bool:
        """Remove the registration; return whether there was one.

        Raises:
            WaitTimeout: With what blocks the deletion.
            KubeError: The API server refused, or did not answer.
        """
        return await self._deployments.delete(registration_resource(name))

    async def _secrets(self, extension: JsonObject) -> dict[str, JsonObject]:
        """Return the Secrets that the chart's registry requires, by field."""
        chart = chart_of(extension, *EXTENSION_CHART)
        found = {}
        for field in (PULL_SECRET, CA_BUNDLE):
            name = secret_named(chart, field)
            if not name:
                continue
            secret = await self._client.find(SECRET, Key(NAMESPACE, name))
            if secret is None:
                raise ExtensionFailed(
                    f"Secret {NAMESPACE}/{name}, which ociRepository.{field} names, does not "
                    "exist: create it"
                )
            found[field] = {**secret, "kind": SECRET.kind}
        return found


def controller_registration(extension: JsonObject) -> JsonObject:
    """Return the ControllerRegistration of an Extension."""
    name = name_of(extension)
    deployment = map_at(extension, "spec", "deployment", "extension")
    how: JsonObject = {"deploymentRefs": [{"name": name}]}
    how |= {field: deployment[field] for field in ("policy", "seedSelector") if field in deployment}
    resources = [_for_seeds(each) for each in maps_at(extension, "spec", "resources")]
    enforced = annotations_of(extension).get(POD_SECURITY)
    return manifest(
        "core.gardener.cloud/v1beta1",
        "ControllerRegistration",
        name,
        annotations=None if enforced is None else {POD_SECURITY: enforced},
        spec={"resources": resources, "deployment": how},
    )


def controller_deployment(
    extension: JsonObject,
    secrets: Mapping[str, JsonObject],
    resources: Mapping[str, JsonObject],
) -> JsonObject:
    """Return the ControllerDeployment of an Extension.

    Args:
        secrets: The Secrets for the registry, by field of the `ociRepository`.
        resources: The objects that its values name, by their names in the Extension.
    """
    deployment = map_at(extension, "spec", "deployment", "extension")
    chart = {**chart_of(extension, *EXTENSION_CHART)}
    for field, secret in secrets.items():
        chart[field] = {"name": copied_name(extension, secret)}
    helm: JsonObject = {"ociRepository": chart}
    if "values" in deployment:
        helm["values"] = deployment["values"]
    fields: JsonObject = {"helm": helm}
    if "injectGardenKubeconfig" in deployment:
        fields["injectGardenKubeconfig"] = deployment["injectGardenKubeconfig"]
    if resources:
        fields["resources"] = [
            {"name": name, "resourceRef": _reference(extension, obj)}
            for name, obj in resources.items()
        ]
    name = name_of(extension)
    return manifest("core.gardener.cloud/v1", "ControllerDeployment", name, **fields)


def copied_name(extension: JsonObject, obj: JsonObject) -> str:
    """Return the name of an object's copy in the virtual cluster."""
    return f"{name_of(extension)}-{name_of(obj)}"


def _reference(extension: JsonObject, obj: JsonObject) -> JsonObject:
    return {"apiVersion": "v1", "kind": obj["kind"], "name": copied_name(extension, obj)}


def _copy(extension: JsonObject, obj: JsonObject) -> JsonObject:
    return manifest(
        "v1",
        str(obj["kind"]),
        copied_name(extension, obj),
        namespace=NAMESPACE,
        labels=labels_of(obj) or None,
        **{field: obj[field] for field in _CONTENT if field in obj},
    )


def _for_seeds(resource: JsonObject) -> JsonObject:
    """Return a served resource without the cluster type that gardenlets do not support."""
    kept = {**resource}
    for field in _CLUSTERS:
        if clusters := kept.pop(field, None):
            kept[field] = [each for each in clusters if each != _GARDEN]
    return {field: value for field, value in kept.items() if value != []}
