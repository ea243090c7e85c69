"""Rules about admission plugins of both API servers (spec 21 §7.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, required, unsupported
from pergola.api.known.kubernetes_admission_plugins import (
    REQUIRED,
    VERSIONS,
    WITH_CONFIGURATION,
    WITH_KUBECONFIG,
)
from pergola.api.known.kubernetes_versions import Version, tabled
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.operator_v1alpha1.api_server import AdmissionPlugin
from pergola.garden.rules.gardener_names import ADMISSION_PLUGINS

_POD_SECURITY: Final = "pod-security.admission.config.k8s.io"
_POD_SECURITY_KIND: Final = f"{_POD_SECURITY}/v1.PodSecurityConfiguration"
_POD_SECURITY_MAPS: Final = ("defaults", "exemptions")


def check_kubernetes_plugins(
    plugins: list[AdmissionPlugin], version: Version, path: str
) -> Iterator[Cause]:
    """Yield the findings about the admission plugins of a kube-apiserver."""
    yield from _unnamed(plugins, path)
    for index, plugin in enumerate(plugins):
        if plugin.name:
            yield from _of_kubernetes(plugin, version, f"{path}[{index}]")


def check_gardener_plugins(plugins: list[AdmissionPlugin], path: str) -> Iterator[Cause]:
    """Yield the findings about the admission plugins of the gardener-apiserver."""
    yield from _unnamed(plugins, path)
    for index, plugin in enumerate(plugins):
        if plugin.name and plugin.name not in ADMISSION_PLUGINS:
            yield unsupported(f"{path}[{index}].name", plugin.name, ADMISSION_PLUGINS)


def _unnamed(plugins: list[AdmissionPlugin], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, plugin in enumerate(plugins):
        if not plugin.name:
            yield required(f"{path}[{index}].name", "must provide a name")
        elif plugin.name in seen:
            yield duplicate(f"{path}[{index}].name", plugin.name)
        seen.add(plugin.name)


def _of_kubernetes(plugin: AdmissionPlugin, version: Version, path: str) -> Iterator[Cause]:
    name = plugin.name
    if name not in VERSIONS:
        yield invalid(f"{path}.name", name, f'unknown admission plugin "{name}"')
        return
    if tabled(version) not in VERSIONS[name]:
        text = ".".join(map(str, version))
        problem = f'admission plugin "{name}" is not supported in Kubernetes version {text}'
        yield forbidden(f"{path}.name", problem)
        return
    if plugin.config and name not in WITH_CONFIGURATION:
        problem = f'admission plugin "{name}" does not allow configuration'
        yield forbidden(f"{path}.config", problem)
    if plugin.disabled and name in REQUIRED:
        yield forbidden(path, f'admission plugin "{name}" cannot be disabled')
    if plugin.kubeconfig_secret_name is not None and name not in WITH_KUBECONFIG:
        problem = f'admission plugin "{name}" does not allow specifying external kubeconfig'
        yield forbidden(f"{path}.kubeconfigSecretName", problem)
    if name == "PodSecurity" and plugin.config is not None:
        yield from _pod_security(plugin.config, f"{path}.config")


def _pod_security(config: JsonObject, path: str) -> Iterator[Cause]:
    gvk = GroupVersionKind.of(config)
    if (gvk.group, gvk.kind) != (_POD_SECURITY, "PodSecurityConfiguration"):
        yield invalid(path, config, f"expected {_POD_SECURITY_KIND}")
        return
    for name in _POD_SECURITY_MAPS:
        if not isinstance(config.get(name) or {}, dict):
            yield invalid(f"{path}.{name}", config[name], "must be a map")
