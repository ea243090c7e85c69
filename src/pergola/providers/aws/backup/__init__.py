"""Backups in S3, for Gardens and Seeds: the extension kinds `BackupBucket` and `BackupEntry`.

bucket   the BackupBucket, on the SDK: `AwsBackupBucket`
entry    the BackupEntry, on the SDK: `AwsBackupEntry`
config   the owner's configuration of a bucket
"""

from pergola.providers.aws.backup.bucket import AwsBackupBucket
from pergola.providers.aws.backup.entry import AwsBackupEntry

__all__ = ["AwsBackupBucket", "AwsBackupEntry"]
