"""The encrypted resources that must be rewritten now (spec 20 §17.3).

Pure functions of a Garden.
"""

from typing import NamedTuple

from pergola.api.operator_v1alpha1 import Garden
from pergola.garden.landscape.encryption_at_rest import (
    ALWAYS_BY_GARDENER,
    ALWAYS_BY_KUBERNETES,
    encrypted_now,
    resource_keys,
)
from pergola.garden.landscape.phases import COMPLETING, PREPARING
from pergola.operator.rotation.phases import rotation_of

_ALWAYS = frozenset((*ALWAYS_BY_KUBERNETES, *ALWAYS_BY_GARDENER))


class Situation(NamedTuple):
    """The pending work on encrypted resources.

    Attributes:
        rewrites: The resources to rewrite, such as `secrets` and `shootstates.core.…`; empty if
            there are none.
        unlabels: The resources to unlabel afterwards; empty if the label stays.
    """

    rewrites: frozenset[str]
    unlabels: frozenset[str]

    def no_rewrite(self) -> str | None:
        """Return why nothing is rewritten; None if something is."""
        return None if self.rewrites else "all encrypted resources are already as desired in etcd"

    def no_unlabelling(self) -> str | None:
        """Return why no label is removed; None if some are."""
        if self.unlabels:
            return None
        if self.rewrites:
            return "the old encryption key is removed when its rotation is completed"
        return self.no_rewrite()


def situation(garden: Garden) -> Situation:
    """Return the pending work on the encrypted resources of a Garden."""
    phase = getattr(rotation_of(garden).get("etcdEncryptionKey"), "phase", "")
    changed = desired(garden) ^ resource_keys(encrypted_now(garden.status).resources)
    everything = _ALWAYS | desired(garden) | changed
    if phase == PREPARING:
        return Situation(everything, frozenset())
    if phase == COMPLETING:
        return Situation(frozenset(changed), everything)
    if changed:
        return Situation(frozenset(changed), frozenset(changed))
    if is_unrecorded(garden):
        # An older operator recorded which resources are encrypted, and needs no rewrite.
        known = garden.status is not None and garden.status.encrypted_resources
        return Situation(frozenset() if known else everything, everything)
    return Situation(frozenset(), frozenset())


def desired(garden: Garden) -> frozenset[str]:
    """Return the resources that a Garden requests to encrypt, without those that always are."""
    virtual = garden.spec.virtual_cluster
    kubernetes = virtual.kubernetes.kube_api_server.encryption_config.resources
    gardener = virtual.gardener.api_server.encryption_config.resources
    return frozenset(resource_keys([*kubernetes, *gardener]))


def provider(garden: Garden) -> str:
    """Return the encryption provider that a Garden requests, such as `aescbc`."""
    return garden.spec.virtual_cluster.kubernetes.kube_api_server.encryption_config.provider.type


def is_unrecorded(garden: Garden) -> bool:
    """Return whether the status lacks the encryption state, as in a new Garden."""
    return encrypted_now(garden.status).provider is None
