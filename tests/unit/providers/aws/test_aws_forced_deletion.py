"""A forced deletion of a Shoot leaves the same in AWS as in the original (spec 30 §3)."""

import pytest

from pergola.extensions import Actuator
from pergola.extensions.backups import BackupEntryActuator
from pergola.providers.aws.actuator import AwsInfrastructure
from pergola.providers.aws.backup import AwsBackupEntry
from pergola.providers.aws.bastion import AwsBastion
from pergola.providers.aws.dns import AwsDnsRecord


@pytest.mark.parametrize(
    ("kind", "deletes"),
    [
        (AwsDnsRecord, True),  # a name would go on pointing to an address that others may get
        (AwsBackupEntry, True),
        (AwsInfrastructure, False),
        (AwsBastion, False),
    ],
)
def test_a_forced_deletion_deletes_what_the_original_deletes(
    kind: type[Actuator], *, deletes: bool
) -> None:
    as_usual = (Actuator.force_delete, BackupEntryActuator.force_delete)
    assert (kind.force_delete in as_usual) is deletes
