"""Images of provider-local: its extension, and the driver of its machines."""

from typing import Final

from pergola.sandbox.images.offer import Offer, Program
from pergola.sandbox.on_demand import (
    LOCAL_PROVIDER,
    MACHINE_CONTROLLER_MANAGER_LOCAL,
    PROVIDER_LOCAL,
)

# Charts use short names, by which a process node selects pods, too.
_SHORT: Final = f"local-skaffold/{PROVIDER_LOCAL}"

PROVIDER: Final[tuple[Offer, ...]] = (
    Program(PROVIDER_LOCAL, f"docker.io/{_SHORT}", LOCAL_PROVIDER, aliases=(_SHORT,)),
    Program(
        MACHINE_CONTROLLER_MANAGER_LOCAL,
        f"docker.io/library/{MACHINE_CONTROLLER_MANAGER_LOCAL}",
        LOCAL_PROVIDER,
        aliases=(MACHINE_CONTROLLER_MANAGER_LOCAL,),
    ),
)
