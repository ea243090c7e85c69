"""Errors of requests to a cloud.

CloudError               root: every failure of this room; `code` is the cloud's own word for it
├── CredentialsInvalid   there are no credentials, or the cloud rejects them
├── Unauthorized         the cloud knows the identity, and denies the request
├── Throttled            too many requests; come back later
├── QuotaExceeded        a quota of the account is exhausted
├── ResourcesDepleted    the cloud has no capacity left
├── DependencyProblem    something else must happen first, here or with the provider
├── NotFound             the resource does not exist
├── AlreadyExists        the resource exists already
├── InvalidRequest       the cloud rejects the request; the configuration must change
├── Unreachable          no answer, or one that says that the cloud itself is in trouble
└── LibraryMissing       the library of the cloud is not installed here
"""

from typing import ClassVar


class CloudError(Exception):
    """Base class of all failures of this room.

    Attributes:
        code: the cloud's error code, such as `InvalidVpcID.NotFound`; ours if it sent none.
        call: the request, such as `ec2 DescribeVpcs in eu-west-1`; empty if there was none.
        may_have_happened: whether a write may have been carried out despite the error.
    """

    is_transient: ClassVar[bool] = False
    """Whether the same request may succeed later without changes."""

    def __init__(
        self, text: str, *, code: str = "", call: str = "", may_have_happened: bool = False
    ) -> None:
        self.code = code
        self.call = call
        self.may_have_happened = may_have_happened
        super().__init__(text)


class CredentialsInvalid(CloudError):
    """There are no credentials, or the cloud rejects them."""


class Unauthorized(CloudError):
    """The cloud knows the identity, and denies the request."""


class Throttled(CloudError):
    """The account made too many requests."""

    is_transient = True


class QuotaExceeded(CloudError):
    """A quota of the account is exhausted."""


class ResourcesDepleted(CloudError):
    """The cloud has no capacity left."""


class DependencyProblem(CloudError):
    """Another resource must change first."""


class NotFound(CloudError):
    """The resource does not exist."""


class AlreadyExists(CloudError):
    """The resource already exists."""


class InvalidRequest(CloudError):
    """The cloud rejects the request: the configuration must change."""


class Unreachable(CloudError):
    """The cloud did not answer, or has a problem itself."""

    is_transient = True


class LibraryMissing(CloudError):
    """The library of the cloud is not installed."""
