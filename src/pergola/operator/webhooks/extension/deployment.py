"""Rules about `spec.deployment` of an Extension (spec 21 §9.2)."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, forbidden, invalid, required
from pergola.api.objects import JsonObject, JsonValue
from pergola.api.operator_v1alpha1.extension import (
    AdmissionDeployment,
    Deployment,
    DeploymentSpec,
    ExtensionDeployment,
    OciRepository,
)
from pergola.garden.rules.references import check_resources

_PATH: Final = "spec.deployment"
_NAME: Final = re.compile(r"[A-Za-z0-9]+")
_EXPRESSION: Final = re.compile(r"{{(.*?)}}", re.DOTALL)
_REFERENCE: Final = re.compile(r"\s*\.resources\.([A-Za-z0-9]+)\.data\.([-._A-Za-z0-9]+)\s*")
_FORM: Final = "{{ .resources.<name>.data.<key> }}"


def check_deployment(deployment: Deployment | None) -> Iterator[Cause]:
    """Yield the findings about the deployment."""
    if deployment is None:
        yield required(_PATH, "deployment must be specified")
        return
    if deployment.extension is None and deployment.admission is None:
        yield required(_PATH, "at least one of extension and admission must be specified")
    for index, resource in enumerate(deployment.resources):
        if resource.name and not _NAME.fullmatch(resource.name):
            at = f"{_PATH}.resources[{index}].name"
            yield invalid(at, resource.name, "must consist of letters and digits")
    yield from check_resources(deployment.resources, f"{_PATH}.resources")
    names = frozenset(resource.name for resource in deployment.resources)
    if deployment.extension is not None:
        yield from _extension(deployment.extension, names, f"{_PATH}.extension")
    if deployment.admission is not None:
        yield from _admission(deployment.admission, names, f"{_PATH}.admission")


def _extension(extension: ExtensionDeployment, names: frozenset[str], path: str) -> Iterator[Cause]:
    yield from _chart(extension, path)
    yield from _values(extension.values, names, f"{path}.values")
    yield from _values(extension.runtime_cluster_values, names, f"{path}.runtimeClusterValues")


def _admission(admission: AdmissionDeployment, names: frozenset[str], path: str) -> Iterator[Cause]:
    if admission.runtime_cluster is None and admission.virtual_cluster is None:
        yield required(path, "at least one of runtimeCluster and virtualCluster must be specified")
    if admission.runtime_cluster is not None:
        yield from _chart(admission.runtime_cluster, f"{path}.runtimeCluster")
    if admission.virtual_cluster is not None:
        yield from _chart(admission.virtual_cluster, f"{path}.virtualCluster")
    yield from _values(admission.values, names, f"{path}.values")


def _chart(spec: DeploymentSpec, path: str) -> Iterator[Cause]:
    if spec.helm is None:
        yield required(f"{path}.helm", "helm must be specified")
    elif spec.helm.oci_repository is None:
        yield required(f"{path}.helm.ociRepository", "ociRepository must be specified")
    else:
        yield from _repository(spec.helm.oci_repository, f"{path}.helm.ociRepository")


def _repository(oci: OciRepository, path: str) -> Iterator[Cause]:
    parts = {"repository": oci.repository, "tag": oci.tag, "digest": oci.digest}
    # An empty ref or digest is one that was set, as in the original.
    if oci.ref is not None and (oci.ref or oci.repository):
        for field, value in parts.items():
            if value:
                yield forbidden(f"{path}.{field}", "must not be set if ref is set")
        return
    if not oci.repository:
        yield required(f"{path}.repository", "must provide either repository or ref")
    if not oci.tag and not oci.digest:
        yield required(f"{path}.tag", "must provide either tag or digest")
    if oci.digest is not None and not oci.digest.startswith("sha256:"):
        yield invalid(f"{path}.digest", oci.digest, "must start with 'sha256:'")


def _values(values: JsonObject | None, names: frozenset[str], path: str) -> Iterator[Cause]:
    """Yield a finding for each expression in keys or values that cannot be substituted."""
    for text in _texts(values):
        for expression in _EXPRESSION.findall(text):
            found = _REFERENCE.fullmatch(expression)
            if found is None:
                yield invalid(path, f"{{{{{expression}}}}}", f"must have the form {_FORM}")
            elif found[1] not in names:
                problem = f'"{found[1]}" is not the name of one of {_PATH}.resources'
                yield invalid(path, f"{{{{{expression}}}}}", problem)
        rest = _EXPRESSION.sub("", text)
        if "{{" in rest or "}}" in rest:
            yield invalid(path, text, "has {{ without }}, or vice versa")


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for entry in value:
                yield from _texts(entry)
        case dict():
            for key, entry in value.items():
                yield key
                yield from _texts(entry)
