"""AWS's error codes, and the error class for each.

Services use different names for the same error, and new codes appear without notice: exact codes
are looked up first, then prefixes and suffixes. Unknown codes remain a plain `CloudError`.
"""

from collections.abc import Mapping
from typing import Final

from pergola.cloud.errors import (
    AlreadyExists,
    CloudError,
    CredentialsInvalid,
    DependencyProblem,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    ResourcesDepleted,
    Throttled,
    Unauthorized,
    Unreachable,
)

_CODES: Final[Mapping[type[CloudError], str]] = {
    CredentialsInvalid: """
        AuthFailure ExpiredToken ExpiredTokenException IDPRejectedClaim IncompleteSignature
        InvalidAccessKeyId InvalidClientTokenId InvalidIdentityToken InvalidSecretAccessKey
        InvalidSecurityToken InvalidSignatureException MissingAuthenticationToken NotSignedUp
        RequestExpired SignatureDoesNotMatch UnrecognizedClientException
    """,
    Unauthorized: """
        AccessDenied AccessDeniedException AuthorizationError Client.UnauthorizedOperation Forbidden
        NotAuthorized Unauthorized UnauthorizedAccess UnauthorizedOperation
    """,
    Throttled: """
        BandwidthLimitExceeded EC2ThrottledException PriorRequestNotComplete RequestLimitExceeded
        RequestThrottled RequestThrottledException SlowDown ThrottledException Throttling
        ThrottlingException TooManyRequestsException
    """,
    QuotaExceeded: """
        LimitExceeded LimitExceededException ServiceQuotaExceededException
        TooManyBuckets TooManyListeners TooManyLoadBalancers TooManyRules TooManyTags
        TooManyTargetGroups
    """,
    ResourcesDepleted: """
        InsufficientAddressCapacity InsufficientCapacity InsufficientHostCapacity
        InsufficientInstanceCapacity InsufficientReservedInstanceCapacity
    """,
    DependencyProblem: """
        BucketNotEmpty Conflict DeleteConflict DependencyViolation IncorrectInstanceState
        IncorrectState InsufficientFreeAddressesInSubnet InvalidCidrBlock
        OperationAborted OperationNotPermittedException OptInRequired PendingVerification
    """,
    NotFound: """
        NatGatewayNotFound ServerSideEncryptionConfigurationNotFoundError
        ObjectLockConfigurationNotFoundError
    """,
    AlreadyExists: """
        BucketAlreadyOwnedByYou EntityAlreadyExists Resource.AlreadyAssociated RouteAlreadyExists
    """,
    InvalidRequest: """
        AuthorizationHeaderMalformed IdempotentParameterMismatch
        IllegalLocationConstraintException PermanentRedirect Unsupported ValidationError
        ValidationException
    """,
    Unreachable: """
        InternalError InternalFailure InternalServiceError RequestTimeout RequestTimeoutException
        ServiceUnavailable Unavailable
    """,
}
_BY_CODE: Final = {code: kind for kind, codes in _CODES.items() for code in codes.split()}
_BY_END: Final[tuple[tuple[tuple[str, ...], type[CloudError]], ...]] = (
    (("NotFound", "NotFoundException"), NotFound),
    (("LimitExceeded", "QuotaExceeded", "LimitExceededException"), QuotaExceeded),
    (("Duplicate", "AlreadyExists", "AlreadyExistsException"), AlreadyExists),
    (("InUse", "InUseException", "Conflict", "ConflictException"), DependencyProblem),
)
_BY_START: Final[tuple[tuple[tuple[str, ...], type[CloudError]], ...]] = (
    (("Duplicate",), AlreadyExists),
    (("NoSuch",), NotFound),
    (("Invalid", "Malformed", "Missing", "Unknown"), InvalidRequest),
)
_TOO_MANY_REQUESTS: Final = 429
_SERVER_FAULT: Final = 500


def kind_of_error(code: str, status: int) -> type[CloudError]:
    """Return the error class for an answer.

    Args:
        code: the code in the answer.
        status: the HTTP status.
    """
    known = _BY_CODE.get(code)
    if known is not None:
        return known
    for ends, kind in _BY_END:
        if code.endswith(ends):
            return kind
    for starts, kind in _BY_START:
        if code.startswith(starts):
            return kind
    if status == _TOO_MANY_REQUESTS:
        return Throttled
    return Unreachable if status >= _SERVER_FAULT else CloudError
