"""The extension `aws`: every kind of extension resource that Pergola serves in AWS."""

from typing import Final

from pergola.cloud.aws.extra import require_library
from pergola.extensions.actuator import Actuator
from pergola.providers.aws.actuator import AwsInfrastructure
from pergola.providers.aws.backup import AwsBackupBucket, AwsBackupEntry
from pergola.providers.aws.bastion import AwsBastion
from pergola.providers.aws.control_plane.actuator import AwsControlPlane
from pergola.providers.aws.dns import AwsDnsRecord
from pergola.providers.aws.workers.actuator import AwsWorker

require_library()  # when the extension is loaded, rather than in the status of each resource

ACTUATORS: Final[tuple[type[Actuator], ...]] = (
    AwsInfrastructure,
    AwsBastion,
    AwsDnsRecord,
    AwsBackupBucket,
    AwsBackupEntry,
    AwsControlPlane,
    AwsWorker,
)
