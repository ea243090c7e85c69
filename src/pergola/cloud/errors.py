"""What can go wrong between us and a cloud.

CloudError               root: every failure of this room; `code` is the cloud's own word for it
├── CredentialsInvalid   there are no credentials, or the cloud does not accept them
├── Unauthorized         the cloud knows who asks, and refuses
├── Throttled            too many requests; come back later
├── QuotaExceeded        the account has as many of these as it may
├── ResourcesDepleted    the cloud has none left
├── DependencyProblem    something else must happen first, here or with the provider
├── NotFound             there is no such thing
├── AlreadyExists        there is one already
├── InvalidRequest       what was asked for cannot be; the configuration must change
└── Unreachable          no answer, or one that says that the cloud itself is in trouble
"""

from typing import ClassVar


class CloudError(Exception):
    """Root of all failures of this room.

    Attributes:
        code: the cloud's own word, such as `InvalidVpcID.NotFound`; ours where it said nothing.
        call: what was asked, such as `ec2 DescribeVpcs in eu-west-1`; empty if it was no call.
        may_have_happened: whether a write may have been carried out all the same.
    """

    is_transient: ClassVar[bool] = False
    """Whether the same request may succeed later, without anybody changing anything."""

    def __init__(
        self, text: str, *, code: str = "", call: str = "", may_have_happened: bool = False
    ) -> None:
        self.code = code
        self.call = call
        self.may_have_happened = may_have_happened
        super().__init__(text)


class CredentialsInvalid(CloudError):
    """There are no credentials, or the cloud does not accept them."""


class Unauthorized(CloudError):
    """The cloud knows who asks, and refuses."""


class Throttled(CloudError):
    """Too many requests were made in this account."""

    is_transient = True


class QuotaExceeded(CloudError):
    """The account has as many of these as it may have."""


class ResourcesDepleted(CloudError):
    """The cloud has none left of what was asked for."""


class DependencyProblem(CloudError):
    """Something else must happen first."""


class NotFound(CloudError):
    """There is no such thing."""


class AlreadyExists(CloudError):
    """There is one already."""


class InvalidRequest(CloudError):
    """What was asked for cannot be: the configuration must change."""


class Unreachable(CloudError):
    """The cloud gave no answer, or is in trouble itself."""

    is_transient = True
