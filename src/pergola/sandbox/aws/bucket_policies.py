"""Policies of buckets, which moto applies without their conditions.

moto would deny all requests as soon as a policy denies those without TLS. So policies
are kept here, and moto never sees them.
"""

from http import HTTPStatus

from aiohttp import web

from pergola.sandbox.aws.answers import Call, Refusal


class BucketPolicies:
    """The policies of all buckets, by path."""

    def __init__(self) -> None:
        self._policies: dict[str, bytes] = {}

    def answer(self, call: Call, path: str, body: bytes) -> web.Response | None:
        """Return the answer to a call about policies; None for all others."""
        if call.service != "s3":
            return None
        bucket = path.strip("/")
        if call.operation == "DeleteBucket":
            self._policies.pop(bucket, None)
        if call.operation == "PutBucketPolicy":
            self._policies[bucket] = body
            return web.Response(status=HTTPStatus.NO_CONTENT)
        if call.operation != "GetBucketPolicy":
            return None
        if bucket not in self._policies:
            status = HTTPStatus.NOT_FOUND
            return Refusal("NoSuchBucketPolicy", status=status).answer(call.service)
        return web.Response(body=self._policies[bucket], content_type="application/json")
