"""The required content of the Secrets and ConfigMaps that a Garden names (spec 20 §8, step 6).

A run checks all of them before it writes anything: an API server started with an empty kubeconfig
would report it only in its log. Problems never quote values.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.bundle.names import content
from pergola.controllers.references import SECRET, Reference
from pergola.kube.errors import ConfigurationError
from pergola.kube.kubeconfig_file import parse_kubeconfig
from pergola.kube.yaml import YamlError, parse
from pergola.pki.certificates import read_certificate
from pergola.pki.errors import CertificateError
from pergola.pki.keys import read_private_key

Found = Mapping[tuple[str, Key], JsonObject]
"""Objects by kind and key."""
Check = Callable[[Mapping[str, bytes]], str | None]
"""Returns the problem with the decoded content of an object, or None."""

_INDEX: Final = re.compile(r"\[\d+\]")
_OF_EXTENSIONS: Final = "spec.resources["
_KUBECONFIG: Final = "kubeconfig"
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"


def content_problems(references: Iterable[Reference], found: Found) -> list[str]:
    """Return the problem with the content of each reference, with the object and the field."""
    return [
        f"{reference.kind} {reference.key} ({reference.field}) {problem}"
        for reference in references
        for problem in _problems(reference, found[reference.kind, reference.key])
    ]


def _problems(reference: Reference, obj: JsonObject) -> Iterator[str]:
    values = content(obj)
    is_for_extensions = reference.field.startswith(_OF_EXTENSIONS)
    if reference.kind == SECRET and not is_for_extensions and not any(values.values()):
        yield "is empty"
    elif problem := _check(reference.field)(values):
        yield problem


def _check(field: str) -> Check:
    path = _INDEX.sub("", field)
    return next((check for end, check in _CHECKS.items() if path.endswith(end)), _anything)


def _anything(_values: Mapping[str, bytes]) -> str | None:
    return None


def _kubeconfig(values: Mapping[str, bytes]) -> str | None:
    text = values.get(_KUBECONFIG)
    if not text:
        return _lacks(_KUBECONFIG)
    with suppress(ConfigurationError):
        if parse_kubeconfig([(Path(_KUBECONFIG), text)]).entries["clusters"]:
            return None
    return f'has a key "{_KUBECONFIG}" that is not a kubeconfig with a cluster'


def _key_pair(values: Mapping[str, bytes]) -> str | None:
    for key in (_CERTIFICATE, _KEY):
        if not values.get(key):
            return _lacks(key)
    try:
        certificate = read_certificate(values[_CERTIFICATE])
        private = read_private_key(values[_KEY])
    except CertificateError as error:
        return f'has a "{_CERTIFICATE}" or "{_KEY}" that cannot be read: {error}'
    if certificate.public_key() != private.public_key():
        return f'has a "{_KEY}" that does not belong to its "{_CERTIFICATE}"'
    return None


def _map(key: str, *, may_be_empty: bool = False) -> Check:
    def check(values: Mapping[str, bytes]) -> str | None:
        if not values.get(key) and not (may_be_empty and key in values):
            return _lacks(key)
        with suppress(YamlError, UnicodeDecodeError):
            value = parse(values[key].decode())
            if isinstance(value, dict) or (value is None and may_be_empty):
                return None
        return f'has a key "{key}" that is not a YAML map'

    return check


def _lacks(key: str) -> str:
    return f'has no content at key "{key}"'


_CHECKS: Final[Mapping[str, Check]] = {
    "kubeconfigSecretName": _kubeconfig,
    "structuredAuthorization.kubeconfigs.secretName": _kubeconfig,
    "sni.secretName": _key_pair,
    "tlsSecretName": _key_pair,
    "auditPolicy.configMapRef.name": _map("policy"),
    "structuredAuthentication.configMapName": _map("config.yaml"),
    "structuredAuthorization.configMapName": _map("config.yaml"),
    "frontendConfigMapRef.name": _map("frontend-config.yaml", may_be_empty=True),
}
"""By the suffix of the field that names the object, without indices."""
