"""Objects without incomparable parts: generated values, hashes, times, image tags.

Parts are removed on both sides. The values of Secrets are always removed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeGuard

import orjson

from pergola.api.objects import JsonObject, JsonValue, annotations_of, labels_of, map_at, maps_at
from pergola.kube.yaml import YamlError, parse
from pergola.operator.compare.placed import without_hash
from pergola.secrets_manager.managed import MANAGED_BY, MANAGER

GENERATED: Final = "(generated)"
"""Replaces a value that differs in every landscape."""
TEXT: Final = "(text)"
"""Replaces a long text, if a dump omits it."""
LONGEST: Final = 160
"""The longest text, in characters, that dumps without long texts include."""

_APART: Final = ("apiVersion", "kind", "metadata", "status")
_NOT_OPTIONAL: Final = ("optional", False)  # which servers keep although it means nothing
_DATA: Final[tuple[str, ...]] = ("data", "binaryData", "stringData")
_GENERATED_FIELDS: Final = ("caBundle", "certificate-authority-data")
_SECRET_FIELDS: Final = ("clientSecret", "password", "secret", "secretKey", "token")
_BEARER: Final = re.compile(r"\b(Bearer|Basic) [\w+/=.-]{16,}")
_ANNOTATIONS_OF_CONTROLLERS: Final = (
    "controller-gen.kubebuilder.io/version",
    "credentials.gardener.cloud/",  # marks of a rotation
    "deployment.kubernetes.io/",
    "gardener.cloud/description",
    "gardener.cloud/operation",
    "gardener.cloud/timestamp",
    "kubectl.kubernetes.io/",
    "reference.resources.gardener.cloud/",  # derived from fields that are compared
    "resources.gardener.cloud/description",
    "resources.gardener.cloud/origin",
    "rotation.operator.gardener.cloud/",
    "serviceaccount.resources.gardener.cloud/token-renew-timestamp",
)
# Labels with the version of an image, whose tag is not compared either.
_LABELS_OF_VERSIONS: Final = ("app.kubernetes.io/version",)
_LABELS_OF_CREDENTIALS: Final = (
    "adopted-for-checksum-of-config",
    "checksum-of-config",
    "checksum-of-signing-ca",
    "issued-at-time",
    "last-rotation-initiation-time",
    "valid-until-time",
)
# Labels that the API server and the resource manager add to objects.
_LABELS_OF_CONTROLLERS: Final = (
    "kubernetes.io/metadata.name",
    "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook",
    "resources.gardener.cloud/managed-by",
)
_PEM: Final = re.compile(r"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?", re.DOTALL)
_ENCODED_PEM: Final = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]+=*")
_NO_SECONDS: Final = re.compile(r"\b(\d+h)0m0s\b|\b(\d+h\d+m|\d+m)0s\b")
_ZEROS: Final = re.compile(r"(--[\w-]+=-?\d+)(?:\.0*|(\.\d*[1-9])0*)$")
# The mode that Istio assumes if none is set: the first of its enumeration.
_MODES: Final = {"DestinationRule": "DISABLE", "Gateway": "PASSTHROUGH"}
_SPACES: Final = re.compile(r"\s*([=!~<>(){}\[\],+*/-])\s*")
_QUOTED: Final = re.compile(r"(\"[^\"]*\"|'[^']*')")
_COMMENT: Final = re.compile(r"#[^\n\"']*$", re.MULTILINE)
_NO_LABELS: Final = re.compile(r"\b(group_left|group_right)\(\)")
# The ends of the kinds of files in which zeros and absent fields mean the same.
_SETTINGS: Final = ("Configuration", "Policy")
_ZERO: Final[tuple[JsonValue, ...]] = (None, "", "0s", 0, {}, [])
_IMAGE: Final = re.compile(r"((?:--[\w-]+=)?[\w-]+\.[\w.-]+(?:/[\w.-]+)+):\w[\w.+$%:-]*(@\S+)?")


def normalise(obj: JsonObject, *, has_texts: bool) -> JsonObject:
    """Return the comparable part of an object, with its labels and annotations next to its fields.

    Args:
        has_texts: Whether both sides include long texts, the values of ConfigMaps, and the contents
            of CustomResourceDefinitions.
    """
    work = _Normalising(has_texts=has_texts)
    found = {name: value for name, value in obj.items() if name not in _APART}
    kind = str(obj.get("kind"))
    data: JsonObject = {name: found.pop(name) for name in _DATA if name in found}
    if kind in ("Role", "ClusterRole"):
        found["rules"] = _grants(maps_at(found, "rules"))
    if kind == "CustomResourceDefinition":
        found = {"spec": _served(map_at(found, "spec"))} if has_texts else {}
    if kind == "Service":
        found |= _service(found)
    if kind in _MODES:
        found["spec"] = _with_modes(map_at(found, "spec"), _MODES[kind])
    normal: JsonObject = {
        "labels": _labels(obj),
        "annotations": work.annotations(obj),
        **work.map(found),
    }
    if kind in ("Secret", "ConfigMap"):
        normal["data"] = work.content(data, is_secret=kind == "Secret")
    else:
        normal |= work.map(data)
    return normal


class _Normalising:
    """The normalisation of the values of one comparison."""

    def __init__(self, *, has_texts: bool) -> None:
        self._has_texts = has_texts

    def map(self, values: Mapping[str, JsonValue]) -> JsonObject:
        return {
            without_hash(name): self._field(name, value)
            for name, value in values.items()
            if (name, value) != _NOT_OPTIONAL
        }

    def annotations(self, obj: JsonObject) -> JsonObject:
        return {
            name: self._annotation(name, value)
            for name, value in annotations_of(obj).items()
            if not name.startswith(_ANNOTATIONS_OF_CONTROLLERS)
        }

    def _annotation(self, name: str, value: JsonValue) -> JsonValue:
        if name.startswith("checksum/"):
            return GENERATED
        if isinstance(value, str):
            return self._structured(value, orjson.loads)
        return self._value(value)  # in a dashboard, annotations are marks in a diagram

    def content(self, data: JsonObject, *, is_secret: bool) -> JsonObject:
        """Return the content of a Secret or ConfigMap by key."""
        values = {key: value for field in data.values() for key, value in _items(field)}
        if is_secret:
            return dict.fromkeys(values, GENERATED)
        if not self._has_texts:
            return dict.fromkeys(values, TEXT)
        return {
            key: self._structured(value, parse) if isinstance(value, str) else value
            for key, value in values.items()
        }

    def _field(self, name: str, value: JsonValue) -> JsonValue:
        is_secret = name in _SECRET_FIELDS and isinstance(value, str)
        if value and (is_secret or name in _GENERATED_FIELDS):
            return GENERATED
        if name == "annotations" and isinstance(value, dict):
            return self.annotations({"metadata": {"annotations": value}})
        if name == "expr" and isinstance(value, str):
            return self._text(_expression(value))
        if name == "image" and isinstance(value, str):
            return _IMAGE.sub(r"\1", value)
        return self._value(value)

    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return self.map(value)
        if isinstance(value, list):
            items = [self._value(item) for item in value]
            return _arguments(items) if any(map(_is_flag, items)) else items
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        if self._is_left_out(text):
            return TEXT
        text = _BEARER.sub(rf"\1 {GENERATED}", _PEM.sub(GENERATED, text))
        text = _ENCODED_PEM.sub(GENERATED, text)
        if image := _IMAGE.fullmatch(text):
            return image[1]
        return without_hash(_NO_SECONDS.sub(r"\1\2", text))

    def _structured(self, text: str, read: Callable[[str], JsonValue]) -> JsonValue:
        """Return the map or list in a text, if it contains one, so that its fields are compared."""
        if self._is_left_out(text):
            return TEXT
        try:
            found = read(text)
        except (ValueError, YamlError):
            found = None
        if isinstance(found, dict) and str(found.get("kind")).endswith(_SETTINGS):
            found = _without_zeros(found)
        return self._value(found) if isinstance(found, dict | list) else self._text(text)

    def _is_left_out(self, text: str) -> bool:
        return not self._has_texts and (len(text) > LONGEST or "\n" in text or text == TEXT)


def _without_zeros(value: JsonObject) -> JsonObject:
    """Return a configuration without the zeros of Go and without what is switched off.

    Gardener's programs write fields that nobody set, and read them as if they were absent.
    """
    kept = {name: _less(each) for name, each in value.items()}
    return {name: each for name, each in kept.items() if not _means_nothing(each)}


def _less(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_less(item) for item in value]
    return _without_zeros(value) if isinstance(value, dict) else value


def _means_nothing(value: JsonValue) -> bool:
    if isinstance(value, dict) and value.get("enabled") is False:
        return True
    return not isinstance(value, bool) and value in _ZERO


def _labels(obj: JsonObject) -> JsonObject:
    labels = labels_of(obj)
    ignored: tuple[str, ...] = _LABELS_OF_CONTROLLERS
    if labels.get(MANAGED_BY) == MANAGER:
        ignored += _LABELS_OF_CREDENTIALS
    return {
        name: GENERATED if name in _LABELS_OF_VERSIONS else without_hash(text)
        for name, text in labels.items()
        if name not in ignored
    }


def _service(service: JsonObject) -> JsonObject:
    """Return a Service with an explicit headless flag, and without target ports of 0.

    Go programs write 0 for an absent target port, and the API server interprets it as absent.
    """
    spec = map_at(service, "spec")
    ports: list[JsonValue] = [
        {name: value for name, value in port.items() if (name, value) != ("targetPort", 0)}
        for port in maps_at(spec, "ports")
    ]
    return {
        "headless": spec.get("clusterIP") == "None",
        "spec": {**spec, "ports": ports} if ports else spec,
    }


def _with_modes(spec: JsonObject, mode: str) -> JsonObject:
    """Return the spec of an Istio object with the TLS modes that writers may omit."""
    return {name: _with_mode(name, value, mode) for name, value in spec.items()}


def _with_mode(name: str, value: JsonValue, mode: str) -> JsonValue:
    if isinstance(value, list):
        return [_with_mode("", item, mode) for item in value]
    if not isinstance(value, dict):
        return value
    found = _with_modes(value, mode)
    return {"mode": mode, **found} if name == "tls" else found


def _expression(text: str) -> str:
    """Return a PromQL expression without comments, and without spaces that mean nothing."""
    parts = _QUOTED.split(_COMMENT.sub("", text))
    return "".join(
        part if position % 2 else _without_spaces(part) for position, part in enumerate(parts)
    ).strip()


def _without_spaces(text: str) -> str:
    return _NO_LABELS.sub(r"\1 ", _SPACES.sub(r"\1", re.sub(r"\s+", " ", text)))


def _items(field: JsonValue) -> list[tuple[str, JsonValue]]:
    return list(field.items()) if isinstance(field, dict) else []


def _grants(rules: Sequence[JsonObject]) -> JsonObject:
    """Return the verbs for each target, regardless of how rules group them."""
    found: dict[str, set[str]] = {}
    for rule in rules:
        verbs = {str(verb) for verb in rule.get("verbs") or ()}
        for subject in _subjects(rule):
            found.setdefault(subject, set()).update(verbs)
    return {subject: [*sorted(verbs)] for subject, verbs in found.items()}


def _subjects(rule: JsonObject) -> Iterator[str]:
    names = "".join(f" {name}" for name in sorted(rule.get("resourceNames") or ()))
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            yield f"{resource}.{group}{names}" if group else f"{resource}{names}"
    yield from map(str, rule.get("nonResourceURLs") or ())


def _arguments(items: Sequence[JsonValue]) -> list[JsonValue]:
    """Return arguments with each flag joined to its value, and numbers without trailing zeros.

    A flag's value may be in the next argument.
    """
    joined: list[JsonValue] = []
    for item in items:
        last = joined[-1] if joined else None
        if isinstance(item, str) and isinstance(last, str) and _takes_value(last, item):
            joined[-1] = f"{last}={item}"
        else:
            joined.append(item)
    return [_ZEROS.sub(r"\1\2", item) if _is_flag(item) else item for item in joined]


def _takes_value(flag: str, following: str) -> bool:
    return _is_flag(flag) and "=" not in flag and not following.startswith("-")


def _is_flag(item: JsonValue) -> TypeGuard[str]:
    return isinstance(item, str) and item.startswith("--")


def _served(definition: JsonObject) -> JsonObject:
    """Return the parts that clients depend on: not the schema, which a release may extend."""
    versions: list[JsonValue] = [
        {field: version.get(field) for field in ("name", "served", "storage")}
        for version in maps_at(definition, "versions")
    ]
    names = {field: map_at(definition, "names").get(field) for field in ("kind", "plural")}
    return {"scope": definition.get("scope"), "names": names, "versions": versions}
