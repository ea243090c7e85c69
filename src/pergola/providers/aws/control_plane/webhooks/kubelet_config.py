"""The configuration file of the kubelet (spec 31 §8).

Nodes restart the kubelet when a byte of the file differs. gardenlet writes it with sorted keys and
with all fields that have no other way to be absent; one line is inserted, and the rest is kept.
"""

import re
from typing import Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.extension_api.errors import ExtensionError
from pergola.kube.yaml import YamlError, dump, parse

_TYPE: Final = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
_DURATIONS: Final = (
    "cpuManagerReconcilePeriod",
    "evictionPressureTransitionPeriod",
    "fileCheckFrequency",
    "httpCheckFrequency",
    "imageMaximumGCAge",
    "imageMinimumGCAge",
    "nodeStatusReportFrequency",
    "nodeStatusUpdateFrequency",
    "runtimeRequestTimeout",
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "streamingConnectionIdleTimeout",
    "syncFrequency",
    "volumeStatsAggPeriod",
)
_BUFFER: Final[JsonObject] = {"infoBufferSize": "0"}
_ZEROS: Final[JsonObject] = {
    **dict.fromkeys(_DURATIONS, "0s"),
    "authentication": {"anonymous": {}, "webhook": {"cacheTTL": "0s"}, "x509": {}},
    "authorization": {"webhook": {"cacheAuthorizedTTL": "0s", "cacheUnauthorizedTTL": "0s"}},
    "containerRuntimeEndpoint": "",
    "crashLoopBackOff": {},
    "logging": {
        "flushFrequency": 0,
        "options": {"json": _BUFFER, "text": _BUFFER},
        "verbosity": 0,
    },
    "memorySwap": {},
}
"""The fields that Go's encoder never omits, with their zero values."""
_EMPTY: Final[tuple[JsonValue, ...]] = (None, {}, [], "")
_FORCED: Final[JsonObject] = {"enableControllerAttachDetach": True}
_KEY: Final = re.compile(r"([A-Za-z]\w*):(?: (.*))?")
_STEP: Final = "  "


class KubeletConfigError(ExtensionError):
    """A text that is not a configuration of the kubelet."""


def adapt_config(text: str) -> str:
    """Return the configuration of a kubelet whose volumes a controller attaches.

    Raises:
        KubeletConfigError: the text is not a configuration of the kubelet.
    """
    found = _read(text)
    # Go's encoder omits other fields without content.
    filled = {key: value for key, value in found.items() if value not in _EMPTY or key in _ZEROS}
    desired = {**_completed(filled, _ZEROS), **_FORCED}
    edited = _inserted(_lines(text), desired, found)
    if edited is not None and _is(edited, desired):
        return edited
    return dump(desired)  # not in gardenlet's form: the same content, as a person would write it


def _read(text: str) -> JsonObject:
    try:
        found = parse(text)
    except YamlError as error:
        text = f"the configuration of the kubelet is not valid YAML: {error}"
        raise KubeletConfigError(text) from None
    if not isinstance(found, dict) or any(found.get(key) != _TYPE[key] for key in _TYPE):
        raise KubeletConfigError(
            "the configuration of the kubelet is not a KubeletConfiguration of "
            f"{_TYPE['apiVersion']}"
        )
    return found


def _completed(value: JsonObject, zeros: JsonObject) -> JsonObject:
    """Add zero values where nothing is set."""
    completed = dict(value)
    for key, zero in zeros.items():
        current = value.get(key)
        if current is None:
            completed[key] = zero
        elif isinstance(current, dict) and isinstance(zero, dict):
            completed[key] = _completed(current, zero)
    return completed


def _inserted(lines: list[str], desired: JsonObject, found: JsonObject) -> str | None:
    """Insert what is desired and not found; None if the lines are not in block style."""
    blocks = _blocks(lines)
    if blocks is None or blocks.keys() != found.keys():
        return None
    for key, value in desired.items():
        current = found.get(key)
        if key in found and current == value:
            continue
        if isinstance(current, dict) and current and isinstance(value, dict):
            below = [line.removeprefix(_STEP) for line in blocks[key][1:]]
            part = _inserted(below, value, current)
            if part is None:
                return None
            blocks[key] = [f"{key}:", *(_STEP + line for line in _lines(part))]
        else:
            blocks[key] = _rendered(key, value)
    return "".join(f"{line}\n" for key in sorted(desired) for line in blocks[key])


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _blocks(lines: list[str]) -> dict[str, list[str]] | None:
    """Return the lines of each key; None if they are not in block style."""
    blocks: dict[str, list[str]] = {}
    block: list[str] = []
    for line in lines:
        if not line or line == "-" or line.startswith((" ", "- ")):
            block.append(line)
        elif (match := _KEY.fullmatch(line)) and match[1] not in blocks:
            block = blocks.setdefault(match[1], [line])
        else:
            return None
    return blocks


def _rendered(key: str, value: JsonValue) -> list[str]:
    """Return the lines of a zero value, as Go's encoder writes them."""
    if isinstance(value, dict) and value:
        below = [line for name in sorted(value) for line in _rendered(name, value[name])]
        return [f"{key}:", *(_STEP + line for line in below)]
    return [f"{key}: {value}" if value == "0s" else dump({key: value}).removesuffix("\n")]


def _is(text: str, desired: JsonObject) -> bool:
    try:
        return parse(text) == desired
    except YamlError:
        return False
