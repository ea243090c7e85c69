"""The interface for authors of control planes of a cloud (spec 31 §6)."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Generic

from pergola.api.field_errors import Cause
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.extensions.actuator import Actuator, Context
from pergola.extensions.control_planes.plan import C, Credential, Plan, Rendered
from pergola.extensions.control_planes.resources import WEBHOOKS
from pergola.extensions.webhooks.network_mutator import CLOUD_LABEL


class ControlPlaneContract(Actuator, Generic[C]):
    """A definition of the controllers for one cloud; pure but for `complete`.

    Attributes:
        config: the type of `spec.providerConfig`.
        config_gvk: its kind.
        accounts: the ServiceAccounts in the Shoot's namespace `kube-system` for controllers on the
            seed; the Secret `shoot-access-<account>` gets the token of each.
    """

    attributes = (*Actuator.attributes, "config", "config_gvk")
    kind = "ControlPlane"
    config: type[C]
    config_gvk: ClassVar[GroupVersionKind]
    accounts: ClassVar[Sequence[str]] = ()

    def check(self, plan: Plan[C]) -> Iterator[Cause]:
        """Yield the problems of a ControlPlane, before anything is written.

        Paths start at the object, as in `spec.providerConfig.storage`.
        """
        yield from ()

    def credentials(self, namespace: str) -> Iterable[Credential]:
        """Return the credentials of the controllers, authorities first; none by default."""
        return ()

    @abstractmethod
    def render(self, plan: Plan[C]) -> Rendered:
        """Return the objects of a plan; pure.

        Raises:
            ExtensionError: the plan cannot be rendered.
        """

    async def complete(self, context: Context, obj: JsonObject, plan: Plan[C]) -> None:
        """Do what is left once everything is applied; nothing by default."""

    @classmethod
    def identity(cls) -> str:
        """Return the identity of the secrets manager: the label of generated Secrets."""
        return f"{cls.name}-controlplane"

    @classmethod
    def shoot_webhooks_resource(cls) -> str:
        """Return the name of the ManagedResource with the webhooks for Shoots."""
        return WEBHOOKS

    @classmethod
    def shoot_namespaces(cls) -> Mapping[str, str]:
        """Return the label of Shoots in the cloud: every cloud has one of the same name."""
        return {CLOUD_LABEL: cls.type}
