"""Changes of an OperatingSystemConfig for nodes on AWS (spec 31 §8)."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, JsonValue, map_at
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import ExtensionError, configuration_problem
from pergola.providers.aws.control_plane.webhooks.edits import adapt_item, at, has_item, with_item
from pergola.providers.aws.control_plane.webhooks.kubelet_config import adapt_config
from pergola.providers.aws.control_plane.webhooks.kubelet_unit import adapt_unit
from pergola.providers.aws.control_plane.webhooks.node_files import (
    MTU_UNIT,
    ecr_files,
    mtu_script,
    mtu_unit,
)

KUBELET_UNIT: Final = "kubelet.service"
KUBELET_CONFIG: Final = "/var/lib/kubelet/config/kubelet"
KERNEL_SETTINGS: Final = "/etc/sysctl.d/99-k8s-general.conf"

_B64: Final = "b64"
_SETTING: Final = "net.ipv4.neigh.default.gc_thresh1"
_IS_SET: Final = re.compile(rf"{re.escape(_SETTING)}[\t\n\v\f\r ]*=[\t\n\v\f\r ]*[0-9A-Za-z]+")
_VALUE: Final = f"{_SETTING} = 0"
_APPENDED: Final = (
    "\n# AWS specific settings\n# See https://github.com/kubernetes/kubernetes/issues/23395\n"
    f"{_VALUE}"
)


class NodeSettings(NamedTuple):
    """The Shoot owner's choices for nodes."""

    ecr: bool
    mtu: bool


def node_settings(shoot: Shoot) -> NodeSettings:
    """Return the settings in a Shoot's InfrastructureConfig; nothing is on without one.

    Raises:
        ExtensionError: a setting is neither true nor false.
    """
    config = map_at(shoot.raw, "spec", "provider").get("infrastructureConfig")
    if not isinstance(config, dict):
        return NodeSettings(ecr=False, mtu=False)
    return NodeSettings(
        ecr=_is_on(config, "enableECRAccess"), mtu=_is_on(config, "enableMTUCustomizer")
    )


def adapt_config_of_nodes(
    obj: JsonObject, settings: NodeSettings, ecr_image: Callable[[], str]
) -> JsonObject:
    """Return an OperatingSystemConfig for nodes on AWS; only those that join a Shoot are changed.

    Args:
        ecr_image: returns the image with the credential provider for AWS's registry.

    Raises:
        ExtensionError: a unit or a file is not what it should be.
    """
    if map_at(obj, "spec").get("purpose") != "reconcile":
        return obj

    def adapted(spec: JsonObject) -> JsonObject:
        units, files = spec.get("units"), spec.get("files")
        units = _with_content(units, KUBELET_UNIT, lambda text: adapt_unit(text, ecr=settings.ecr))
        files = _with_file(files, KUBELET_CONFIG, adapt_config)
        files = _with_file(files, KERNEL_SETTINGS, adapt_kernel_settings)
        if settings.mtu:
            files = with_item(files, "path", mtu_script())
            if not has_item(units, "name", MTU_UNIT):
                units = with_item(units, "name", mtu_unit())
        for file in ecr_files(ecr_image()) if settings.ecr else ():
            files = with_item(files, "path", file)
        changed = {"units": units, "files": files}
        return {**spec, **{key: v for key, v in changed.items() if v is not None or key in spec}}

    return at(obj, ("spec",), adapted)


def adapt_kernel_settings(text: str) -> str:
    """Return kernel settings with which nodes forget the addresses of pods that are gone."""
    return _IS_SET.sub(_VALUE, text) if _IS_SET.search(text) else text + _APPENDED


def _with_content(units: JsonValue, name: str, adapt: Callable[[str], str]) -> JsonValue:
    def adapted(unit: JsonObject) -> JsonObject:
        content = unit.get("content")
        return {**unit, "content": adapt(content)} if isinstance(content, str) else unit

    return adapt_item(units, "name", name, adapted)


def _with_file(files: JsonValue, path: str, adapt: Callable[[str], str]) -> JsonValue:
    def adapted(file: JsonObject) -> JsonObject:
        return at(file, ("content", "inline"), lambda inline: _recoded(inline, path, adapt))

    return adapt_item(files, "path", path, adapted)


def _recoded(inline: JsonObject, path: str, adapt: Callable[[str], str]) -> JsonObject:
    """Adapt the text of a file, and keep its encoding."""
    data, encoding = inline.get("data"), inline.get("encoding") or ""
    if not isinstance(data, str):
        return inline
    if not encoding:
        return {**inline, "data": adapt(data)}
    if encoding != _B64:
        raise ExtensionError(f'file {path} has the encoding "{encoding}"; it must be b64 or empty')
    try:
        text = base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        raise ExtensionError(f"file {path} is not base64 of a text") from None
    return {**inline, "data": base64.b64encode(adapt(text).encode()).decode()}


def _is_on(config: JsonObject, field: str) -> bool:
    value = config.get(field)
    if value is None or isinstance(value, bool):
        return value is not False
    raise configuration_problem(
        f"spec.provider.infrastructureConfig.{field} of the Shoot is neither true nor false"
    )
