"""The bucket itself: its existence, owner and location."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import AlreadyExists, NotFound, Unauthorized
from pergola.extension_api.errors import Code, ExtensionError, configuration_problem

_SERVICE: Final = "s3"
_UNSET_REGION: Final = "us-east-1"
"""The region of buckets without a location constraint."""
_OLD_NAMES: Final = {"EU": "eu-west-1"}
_OWN: Final = "BucketAlreadyOwnedByYou"
_PARTITIONS: Final = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of one account; requests fail if it belongs to another account."""

    aws: AwsClient
    name: str
    account: str

    async def call(self, operation: str, **parameters: Any) -> JsonObject:
        """Send a request about the bucket.

        Raises:
            CloudError: AWS refused.
        """
        return await self.aws.call(
            _SERVICE,
            operation,
            Bucket=self.name,
            ExpectedBucketOwner=self.account,
            **parameters,
        )

    async def find(self, operation: str, **parameters: Any) -> JsonObject | None:
        """Send a request for a part of the bucket; return None if that does not exist.

        Raises:
            CloudError: AWS refused.
        """
        try:
            return await self.call(operation, **parameters)
        except NotFound:
            return None

    @property
    def arn(self) -> str:
        """The ARN of the bucket."""
        region = self.aws.region
        found = (name for prefix, name in _PARTITIONS.items() if region.startswith(prefix))
        return f"arn:{next(found, 'aws')}:s3:::{self.name}"


async def bucket_of(aws: AwsClient, name: str) -> Bucket:
    """Return the bucket with a name in the account of the credentials; it may not exist.

    Raises:
        CloudError: AWS refused.
    """
    return Bucket(aws, name, await aws.account())


async def bucket_exists(bucket: Bucket) -> bool:
    """Return whether the bucket exists in its account.

    Raises:
        ExtensionError: it belongs to another account, or is in another region.
        CloudError: AWS refused.
    """
    try:
        answer = await bucket.find("GetBucketLocation")
    except Unauthorized as error:
        raise ExtensionError(
            f"bucket {bucket.name} belongs to another account, or the credentials of account "
            f"{bucket.account} do not permit s3:GetBucketLocation ({error.code}): choose another "
            "name, or allow it",
            Code.UNAUTHORIZED,
        ) from error
    if answer is None:
        return False
    location = str(answer.get("LocationConstraint") or _UNSET_REGION)
    location = _OLD_NAMES.get(location, location)
    if location != bucket.aws.region:
        raise configuration_problem(
            f"bucket {bucket.name} is in region {location}, not in {bucket.aws.region}: set "
            "spec.region to it, or choose another name"
        )
    return True


async def create_bucket(bucket: Bucket, *, with_lock: bool) -> None:
    """Create the bucket; one that an earlier run created counts as created.

    Args:
        with_lock: whether objects can be locked, which also enables versioning.

    Raises:
        ExtensionError: the name belongs to another account.
        CloudError: AWS refused.
    """
    region = bucket.aws.region
    place: JsonObject = {"CreateBucketConfiguration": {"LocationConstraint": region}}
    lock: JsonObject = {"ObjectLockEnabledForBucket": True}
    try:
        await bucket.aws.call(
            _SERVICE,
            "CreateBucket",
            Bucket=bucket.name,
            **({} if region == _UNSET_REGION else place),
            **(lock if with_lock else {}),
        )
    except AlreadyExists as error:
        if error.code == _OWN:
            return
        raise configuration_problem(
            f"bucket {bucket.name} belongs to another account, and names of buckets are unique in "
            "all of AWS: choose another name"
        ) from error


async def delete_bucket(bucket: Bucket) -> None:
    """Delete the empty bucket; a missing one counts as deleted.

    Raises:
        CloudError: AWS refused.
    """
    with suppress(NotFound):
        await bucket.call("DeleteBucket")
