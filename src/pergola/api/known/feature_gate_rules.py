"""Rules about feature gates of components of Kubernetes (spec 21 §7.4)."""

from collections.abc import Iterator, Mapping

from pergola.api.field_errors import Cause, forbidden, invalid
from pergola.api.known.kubernetes_feature_gates import (
    is_known,
    kubernetes_feature_gate,
    locked_value,
)
from pergola.api.known.kubernetes_versions import Version


def check_kubernetes_feature_gates(
    gates: Mapping[str, bool], version: Version, path: str
) -> Iterator[Cause]:
    """Yield the findings about feature gates of a Kubernetes component."""
    for name, value in gates.items():
        gate = kubernetes_feature_gate(name)
        if gate is None:
            yield invalid(f"{path}.{name}", name, f"unknown feature gate {name}")
        elif not is_known(gate, version):
            text = ".".join(map(str, version))
            yield forbidden(f"{path}.{name}", f"not supported in Kubernetes version {text}")
        else:
            yield from check_lock(value, locked_value(gate, version), f"{path}.{name}")


def check_lock(value: bool, only: bool | None, path: str) -> Iterator[Cause]:
    """Yield a finding if a feature gate is locked to another value; None if it is not locked."""
    if only is not None and value != only:
        yield forbidden(
            path,
            f"cannot set feature gate to {str(value).lower()}, "
            f"feature is locked to {str(only).lower()}",
        )
