"""The volumes of etcd on a seed in AWS (spec 31 §8)."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from pergola.admission.draft import Draft
from pergola.api.objects import JsonObject, map_at, name_of
from pergola.bundle.errors import BundleError
from pergola.kube.quantities import QuantityError, parse_quantity

MAIN: Final = "etcd-main"
OTHERS: Final = ("etcd-events", "virtual-garden-etcd-main", "virtual-garden-etcd-events")
CLASS: Final = "PERGOLA_AWS_ETCD_STORAGE_CLASS"
CAPACITY: Final = "PERGOLA_AWS_ETCD_STORAGE_CAPACITY"
_SMALL: Final = "10Gi"
_BECAUSE: Final = "etcd on AWS has volumes of a known class and size"


class EtcdStorage(NamedTuple):
    """The volumes of new `etcd-main`s; the class is the default one of the cluster if empty."""

    storage_class: str = ""
    capacity: str = _SMALL

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the environment variables of the process.

        Raises:
            BundleError: the capacity is not a quantity.
        """
        capacity = environment.get(CAPACITY) or _SMALL
        try:
            parse_quantity(capacity)
        except QuantityError as error:
            raise BundleError(f"{CAPACITY} is not a quantity: {error}") from None
        return cls(environment.get(CLASS, ""), capacity)

    def mutate(self, draft: Draft, old: JsonObject | None) -> None:
        """Set the volume of an Etcd; `etcd-main` keeps what it has, since volumes cannot shrink."""
        chosen = EtcdStorage()
        if not isinstance(draft.get("spec"), dict):
            return
        if name_of(draft.object) == MAIN:
            spec = {} if old is None else map_at(old, "spec")
            storage_class, capacity = spec.get("storageClass"), spec.get("storageCapacity")
            chosen = EtcdStorage(
                self.storage_class if storage_class is None else storage_class,
                capacity or self.capacity,
            )
        draft.set(("spec", "storageClass"), chosen.storage_class, _BECAUSE)
        draft.set(("spec", "storageCapacity"), chosen.capacity, _BECAUSE)
