"""The admission plugins of an API server, and their configuration files.

A plugin may call a webhook with a kubeconfig. The path of that file never comes from the user's
configuration: otherwise users could make the API server read any file in its pod.
"""

import base64
from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.api.operator_v1alpha1.api_server import AdmissionPlugin
from pergola.bundle import make_unique
from pergola.garden.components.api_server.part import (
    ApiServer,
    Part,
    mounted_config_map,
    mounted_secret,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import KUBE_SYSTEM, manifest

_GROUP: Final = "apiserver.config.k8s.io/v1"
_WEBHOOKS: Final = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
_IMAGE_POLICY: Final = "ImagePolicyWebhook"
_POD_SECURITY: Final = "PodSecurity"
_CONFIG_KEY: Final = "admission-configuration.yaml"
_CONFIG_PATH: Final = "/etc/kubernetes/admission"
_KUBECONFIG_PATH: Final = "/etc/kubernetes/admission-kubeconfigs"


def admission(
    landscape: Landscape, server: ApiServer, defaults: Sequence[AdmissionPlugin] = ()
) -> Part:
    """Return the flags and files that configure the plugins of an API server.

    Args:
        defaults: Plugins that run unless the settings disable them.

    Raises:
        ReferenceMissing: The Secret with the kubeconfig of a plugin does not exist or lacks it.
    """
    enabled = enabled_plugins(server.settings.admission_plugins, defaults)
    config = _config_map(server, enabled)
    kubeconfigs = _kubeconfigs(landscape, server, enabled)
    return (
        Part(args=_flags(server, enabled), objects=(config, kubeconfigs))
        + mounted_config_map("admission-config", _CONFIG_PATH, name_of(config))
        + mounted_secret("admission-kubeconfigs", _KUBECONFIG_PATH, name_of(kubeconfigs))
    )


def enabled_plugins(
    configured: Sequence[AdmissionPlugin], defaults: Sequence[AdmissionPlugin]
) -> list[AdmissionPlugin]:
    """Return the plugins that run: the defaults first, overridden by configured ones by name."""
    plugins = {plugin.name: plugin for plugin in (*defaults, *configured)}
    return [plugin for plugin in plugins.values() if not plugin.disabled]


def _flags(server: ApiServer, enabled: Sequence[AdmissionPlugin]) -> tuple[str, ...]:
    disabled = [each.name for each in server.settings.admission_plugins if each.disabled]
    lists = {
        "--enable-admission-plugins": [plugin.name for plugin in enabled],
        "--disable-admission-plugins": disabled,
        "--admission-control-config-file": [f"{_CONFIG_PATH}/{_CONFIG_KEY}"],
    }
    return tuple(f"{flag}={','.join(values)}" for flag, values in lists.items() if values)


def _config_map(server: ApiServer, enabled: Sequence[AdmissionPlugin]) -> JsonObject:
    configs = {plugin.name: configuration(plugin) for plugin in enabled}
    files = {_file(name): dump(config) for name, config in configs.items() if config}
    plugins: list[JsonObject] = [
        {"name": name, "path": f"{_CONFIG_PATH}/{_file(name)}"}
        for name, config in configs.items()
        if config
    ]
    entry: JsonObject = {"apiVersion": _GROUP, "kind": "AdmissionConfiguration", "plugins": plugins}
    name = f"{server.name}-admission-config"
    data = {_CONFIG_KEY: dump(entry), **files}
    return make_unique(manifest("v1", "ConfigMap", name, namespace=NAMESPACE, data=data))


def configuration(plugin: AdmissionPlugin) -> JsonObject | None:
    """Return the content of a plugin's configuration file, or None if it needs none."""
    path = f"{_KUBECONFIG_PATH}/{_kubeconfig_file(plugin.name)}"
    at = {"kubeConfigFile": path if plugin.kubeconfig_secret_name else ""}
    config = plugin.config
    if config is None and not plugin.kubeconfig_secret_name:
        return None
    if plugin.name in _WEBHOOKS:
        default: JsonObject = {"apiVersion": _GROUP, "kind": "WebhookAdmissionConfiguration"}
        return {**(config or default), **at}
    if plugin.name == _IMAGE_POLICY:
        return {**(config or {}), "imagePolicy": {**map_at(config or {}, "imagePolicy"), **at}}
    return _exempting_kube_system(config) if plugin.name == _POD_SECURITY and config else config


def _exempting_kube_system(config: JsonObject) -> JsonObject:
    exemptions = map_at(config, "exemptions")
    namespaces = exemptions.get("namespaces") or []
    if KUBE_SYSTEM in namespaces:
        return config
    return {**config, "exemptions": {**exemptions, "namespaces": [*namespaces, KUBE_SYSTEM]}}


def _kubeconfigs(
    landscape: Landscape, server: ApiServer, enabled: Sequence[AdmissionPlugin]
) -> JsonObject:
    data = {
        _kubeconfig_file(plugin.name): base64.b64encode(
            landscape.referenced_value("Secret", plugin.kubeconfig_secret_name, "kubeconfig")
        ).decode()
        for plugin in enabled
        if plugin.kubeconfig_secret_name
    }
    name = f"{server.name}-admission-kubeconfigs"
    return make_unique(
        manifest("v1", "Secret", name, namespace=NAMESPACE, type="Opaque", data=data)
    )


def _file(plugin: str) -> str:
    return f"{plugin.lower()}.yaml"


def _kubeconfig_file(plugin: str) -> str:
    return f"{plugin.lower()}-kubeconfig.yaml"
