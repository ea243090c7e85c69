"""Operations of AWS's REST services, by the requests that make them."""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs

_PATHS: Final[Mapping[str, Sequence[tuple[str, str, str]]]] = {
    "elasticfilesystem": (
        ("POST", r".*/file-systems", "CreateFileSystem"),
        ("GET", r".*/file-systems", "DescribeFileSystems"),
        ("DELETE", r".*/file-systems/[^/]+", "DeleteFileSystem"),
        ("POST", r".*/mount-targets", "CreateMountTarget"),
        ("GET", r".*/mount-targets", "DescribeMountTargets"),
        ("DELETE", r".*/mount-targets/[^/]+", "DeleteMountTarget"),
        ("GET", r".*/mount-targets/[^/]+/security-groups", "DescribeMountTargetSecurityGroups"),
        ("PUT", r".*/mount-targets/[^/]+/security-groups", "ModifyMountTargetSecurityGroups"),
        ("POST", r".*/resource-tags/[^/]+", "TagResource"),
        ("DELETE", r".*/resource-tags/[^/]+", "UntagResource"),
        ("GET", r".*/resource-tags/[^/]+", "ListTagsForResource"),
    ),
    "route53": (
        ("GET", r".*/hostedzone", "ListHostedZones"),
        ("POST", r".*/hostedzone", "CreateHostedZone"),
        ("DELETE", r".*/hostedzone/[^/]+", "DeleteHostedZone"),
        ("GET", r".*/hostedzone/[^/]+/rrset", "ListResourceRecordSets"),
        ("POST", r".*/hostedzone/[^/]+/rrset", "ChangeResourceRecordSets"),
    ),
    "s3": (
        ("PUT", r"/[^/]+", "CreateBucket"),
        ("DELETE", r"/[^/]+", "DeleteBucket"),
        ("GET", r"/[^/]+", "ListObjects"),
        ("PUT", r"/[^/]+/.+", "PutObject"),
        ("GET", r"/[^/]+/.+", "GetObject"),
        ("POST", r"/[^/]+/.+", "CompleteMultipartUpload"),
    ),
}
REST: Final = frozenset(_PATHS)
"""The services whose operations follow from method and path."""
# Of S3: a parameter of the query that names an aspect of the bucket or object.
_ASPECTS: Final = {
    "delete": {"POST": "DeleteObjects"},
    "encryption": {"GET": "GetBucketEncryption", "PUT": "PutBucketEncryption"},
    "lifecycle": {
        "GET": "GetBucketLifecycleConfiguration",
        "PUT": "PutBucketLifecycleConfiguration",
    },
    "location": {"GET": "GetBucketLocation"},
    "object-lock": {"GET": "GetObjectLockConfiguration", "PUT": "PutObjectLockConfiguration"},
    "policy": {"GET": "GetBucketPolicy", "PUT": "PutBucketPolicy"},
    "publicAccessBlock": {"GET": "GetPublicAccessBlock", "PUT": "PutPublicAccessBlock"},
    "uploadId": {"DELETE": "AbortMultipartUpload"},
    "uploads": {"GET": "ListMultipartUploads", "POST": "CreateMultipartUpload"},
    "versioning": {"GET": "GetBucketVersioning", "PUT": "PutBucketVersioning"},
    "versions": {"GET": "ListObjectVersions"},
}


def operation_at(service: str, method: str, path: str, query: str) -> str:
    """Return the operation of a request to a REST service."""
    given = parse_qs(query, keep_blank_values=True) if service == "s3" else {}
    for aspect, operations in _ASPECTS.items():
        if aspect in given and method in operations:
            return operations[method]
    for verb, pattern, operation in _PATHS[service]:
        if verb == method and re.fullmatch(pattern, path.rstrip("/")):
            return operation
    return f"{method} {path}"
