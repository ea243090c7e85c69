"""The interface for authors of a cloud's machines (spec 31 §1)."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Generic

from pergola.api.field_errors import Cause
from pergola.api.objects import GroupVersionKind
from pergola.extension_api.errors import Code
from pergola.extensions.actuator import Actuator
from pergola.extensions.workers.plan import Machines, WorkerPlan
from pergola.extensions.workers.pool import C, Pool


class WorkerContract(Actuator, Generic[C]):
    """A definition of the machines of one cloud; pure.

    Attributes:
        config: the type of a pool's `providerConfig`.
        config_gvk: its kind.
        provider: the name of the cloud in MachineClasses, such as `AWS`.
    """

    attributes = (*Actuator.attributes, "config", "config_gvk", "provider")
    kind = "Worker"
    config: type[C]
    config_gvk: ClassVar[GroupVersionKind]
    provider: ClassVar[str]

    def check(self, plan: WorkerPlan[C]) -> Iterator[Cause]:
        """Yield the problems of a Worker, before anything is written.

        Paths start at the object, as in `spec.pools[0].volume`.
        """
        yield from ()

    def hashes_written(self, pool: Pool[C]) -> bool:
        """Return whether a pool's hash depends on the bytes of its `providerConfig`."""
        return False

    def codes_of(self, text: str) -> Sequence[Code]:
        """Return the classes of an error that the cloud reported about a machine."""
        return ()

    @abstractmethod
    def render(self, plan: WorkerPlan[C]) -> Machines:
        """Return the machines of a plan; pure.

        Raises:
            ExtensionError: the plan cannot be rendered.
        """
