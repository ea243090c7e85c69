"""Images of provider-local: its extension, and what makes machines of its workers."""

from typing import Final

from pergola.sandbox.images.offer import Offer, Program
from pergola.sandbox.on_demand import (
    LOCAL_PROVIDER,
    MACHINE_CONTROLLER_MANAGER,
    MACHINE_CONTROLLER_MANAGER_LOCAL,
    MACHINES,
    PROVIDER_LOCAL,
)

# Charts use short names, by which a process node selects pods, too.
_SHORT: Final = f"local-skaffold/{PROVIDER_LOCAL}"
_RELEASES: Final = "europe-docker.pkg.dev/gardener-project/releases/gardener"

PROVIDER: Final[tuple[Offer, ...]] = (
    Program(PROVIDER_LOCAL, f"docker.io/{_SHORT}", LOCAL_PROVIDER, aliases=(_SHORT,)),
    Program(
        MACHINE_CONTROLLER_MANAGER_LOCAL,
        f"docker.io/library/{MACHINE_CONTROLLER_MANAGER_LOCAL}",
        LOCAL_PROVIDER,
        aliases=(MACHINE_CONTROLLER_MANAGER_LOCAL,),
    ),
    Program(
        MACHINE_CONTROLLER_MANAGER,
        f"{_RELEASES}/{MACHINE_CONTROLLER_MANAGER}",
        MACHINES,
    ),
)
