"""Images of the programs that make machines of Workers: for any cloud, and for AWS."""

from typing import Final

from pergola.sandbox.images.offer import Offer, Program
from pergola.sandbox.on_demand import (
    MACHINE_CONTROLLER_AWS,
    MACHINE_CONTROLLER_MANAGER,
    MACHINES,
)

_RELEASES: Final = "europe-docker.pkg.dev/gardener-project/releases/gardener"

MACHINE_CONTROLLERS: Final[tuple[Offer, ...]] = (
    Program(MACHINE_CONTROLLER_MANAGER, f"{_RELEASES}/{MACHINE_CONTROLLER_MANAGER}", MACHINES),
    Program(
        MACHINE_CONTROLLER_AWS,
        f"{_RELEASES}/{MACHINE_CONTROLLER_MANAGER}-provider-aws",
        MACHINES,
        stand_in="starts, finds and terminates instances, on the original's library",
    ),
)
