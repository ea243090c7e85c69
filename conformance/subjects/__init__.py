"""The subjects: what is compared, one module each."""

from typing import Final

from conformance.subjects.aws_infrastructure import AwsInfrastructure
from conformance.subjects.aws_parts import AwsBackupBucket, AwsCredentials, AwsImage
from conformance.subjects.aws_pools import AwsControlPlane, AwsWorker
from conformance.subjects.aws_shoots import AwsShoot, AwsShootDefaults
from conformance.subjects.health import Health
from conformance.subjects.subject import Subject

SUBJECTS: Final[tuple[Subject, ...]] = (
    Health(),
    AwsInfrastructure(),
    AwsControlPlane(),
    AwsWorker(),
    AwsImage(),
    AwsBackupBucket(),
    AwsCredentials(),
    AwsShoot(),
    AwsShootDefaults(),
)
"""All subjects."""
