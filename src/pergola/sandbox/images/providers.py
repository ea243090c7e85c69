"""Images of the originals' providers, and of controllers for their clouds."""

from typing import Final

from pergola.sandbox.images.offer import Offer, Program
from pergola.sandbox.on_demand import (
    AWS_CLOUD_CONTROLLER_MANAGER,
    AWS_PROVIDER,
    CLOUD_CONTROLLERS,
    CSI_ATTACHER,
    CSI_DRIVER_AWS,
    CSI_PROVISIONER,
    LOCAL_PROVIDER,
    MACHINE_CONTROLLER_MANAGER_LOCAL,
    PROVIDER_AWS,
    PROVIDER_LOCAL,
    VOLUMES,
)

# Charts use short names, by which a process node selects pods, too.
_SHORT: Final = f"local-skaffold/{PROVIDER_LOCAL}"
_EXTENSIONS: Final = "europe-docker.pkg.dev/gardener-project/public/gardener/extensions"

PROVIDERS: Final[tuple[Offer, ...]] = (
    Program(PROVIDER_LOCAL, f"docker.io/{_SHORT}", LOCAL_PROVIDER, aliases=(_SHORT,)),
    Program(
        MACHINE_CONTROLLER_MANAGER_LOCAL,
        f"docker.io/library/{MACHINE_CONTROLLER_MANAGER_LOCAL}",
        LOCAL_PROVIDER,
        aliases=(MACHINE_CONTROLLER_MANAGER_LOCAL,),
    ),
    Program(PROVIDER_AWS, f"{_EXTENSIONS}/provider-aws", AWS_PROVIDER),
    Program(
        AWS_CLOUD_CONTROLLER_MANAGER,
        "registry.k8s.io/provider-aws/cloud-controller-manager",
        CLOUD_CONTROLLERS,
    ),
    Program(
        CSI_DRIVER_AWS,
        "registry.k8s.io/provider-aws/aws-ebs-csi-driver",
        VOLUMES,
        stand_in="creates, attaches, detaches and deletes volumes, on AWS's SDK",
    ),
    Program(CSI_PROVISIONER, f"registry.k8s.io/sig-storage/{CSI_PROVISIONER}", VOLUMES),
    Program(CSI_ATTACHER, f"registry.k8s.io/sig-storage/{CSI_ATTACHER}", VOLUMES),
)
