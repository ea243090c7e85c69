"""The minimal permissions of the identities for DNS records and for backups.

They are separate identities: those in the Secrets of a Garden or a Seed. S3's operations have
different names than their actions, so the tables contain both.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pergola.api.objects import JsonObject


class Purpose(StrEnum):
    """The purpose of an identity."""

    DNS = "dns"
    """DNSRecords in Route 53."""
    BACKUP = "backup"
    """Backups in S3, including the etcd's own needs with the same identity."""


_ACTIONS: Final[Mapping[Purpose, Mapping[str, str]]] = {
    Purpose.DNS: {
        "ListHostedZones": "route53:ListHostedZones",
        "ListResourceRecordSets": "route53:ListResourceRecordSets",
        "ChangeResourceRecordSets": "route53:ChangeResourceRecordSets",
    },
    Purpose.BACKUP: {
        "AbortMultipartUpload": "s3:AbortMultipartUpload",
        "CreateBucket": "s3:CreateBucket",
        "DeleteBucket": "s3:DeleteBucket",
        "DeleteObjects": "s3:DeleteObject s3:DeleteObjectVersion",
        "GetBucketEncryption": "s3:GetEncryptionConfiguration",
        "GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
        "GetBucketLocation": "s3:GetBucketLocation",
        "GetBucketPolicy": "s3:GetBucketPolicy",
        "GetBucketVersioning": "s3:GetBucketVersioning",
        "GetObjectLockConfiguration": "s3:GetBucketObjectLockConfiguration",
        "GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
        "HeadObject": "s3:GetObject s3:GetObjectRetention s3:GetObjectVersion",
        "ListMultipartUploads": "s3:ListBucketMultipartUploads",
        "ListObjectVersions": "s3:ListBucketVersions",
        "PutBucketEncryption": "s3:PutEncryptionConfiguration",
        "PutBucketLifecycleConfiguration": "s3:PutLifecycleConfiguration",
        "PutBucketPolicy": "s3:PutBucketPolicy",
        "PutBucketVersioning": "s3:PutBucketVersioning",
        "PutObjectLockConfiguration": "s3:PutBucketObjectLockConfiguration",
        "PutPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    },
}
_OF_OTHERS: Final = {
    Purpose.BACKUP: ("s3:GetObject", "s3:ListBucket", "s3:PutObject"),
}
"""The actions of the etcd, which uses the same Secret."""
_ACCOUNT_WIDE: Final = ("route53:ListHostedZones",)
_RESOURCES: Final = {
    Purpose.DNS: ("arn:{partition}:route53:::hostedzone/{names}",),
    Purpose.BACKUP: ("arn:{partition}:s3:::{names}", "arn:{partition}:s3:::{names}/*"),
}


def operations(purpose: Purpose) -> frozenset[str]:
    """Return the operations that the extension uses for a purpose."""
    return frozenset(_ACTIONS[purpose])


def garden_iam_policy(purpose: Purpose, *, names: str = "*", partition: str = "aws") -> JsonObject:
    """Return an IAM policy with exactly the permissions for a purpose.

    Args:
        names: of the hosted zones by id, or of the buckets, as IAM writes patterns.
        partition: of AWS, such as `aws-cn`.
    """
    needed = {each for several in _ACTIONS[purpose].values() for each in several.split()}
    actions = sorted(needed.union(_OF_OTHERS.get(purpose, ())))
    resources = [each.format(partition=partition, names=names) for each in _RESOURCES[purpose]]
    everywhere = [action for action in actions if action in _ACCOUNT_WIDE]
    statements = [
        _statement(
            f"Pergola{purpose.title()}", [a for a in actions if a not in everywhere], resources
        )
    ]
    if everywhere:
        statements.append(_statement(f"Pergola{purpose.title()}Account", everywhere, ["*"]))
    return {"Version": "2012-10-17", "Statement": statements}


def _statement(name: str, actions: list[str], resources: list[str]) -> JsonObject:
    return {"Sid": name, "Effect": "Allow", "Action": actions, "Resource": resources}
