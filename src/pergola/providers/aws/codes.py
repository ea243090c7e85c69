"""Error codes of AWS failures for `status.lastError.codes` (spec 30 §2 item 8).

Our own errors contain their codes, and the client's errors their class. Texts are searched only for
other errors: errors of AWS without a class, and those passed on from elsewhere.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pergola.api.schema.read import Malformed
from pergola.cloud.errors import (
    CloudError,
    CredentialsInvalid,
    InvalidRequest,
    QuotaExceeded,
    Unauthorized,
)
from pergola.extension_api.errors import Code, ExtensionError, codes_of
from pergola.flow import Diagnosis, FlowFailed
from pergola.runtime.failures import leaves, sentence_of

_BY_AWS_CODE: Final = {
    # Unknown keys: callers have always treated these as a lack of permission.
    "InvalidClientTokenId": Code.UNAUTHORIZED,
    "SignatureDoesNotMatch": Code.UNAUTHORIZED,
    "Resource.AlreadyAssociated": Code.DEPENDENCIES,
}
_PATTERNS: Final = {
    Code.UNAUTHENTICATED: ("AuthFailure", "InvalidAccessKeyId", "InvalidSecretAccessKey"),
    Code.UNAUTHORIZED: (
        "Unauthorized",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "AccessDenied",
    ),
    Code.QUOTA_EXCEEDED: (
        "(?<!Request)LimitExceeded",
        "Quotas",
        "Quota.*exceeded",
        "exceeded quota",
        "Quota has been met",
        "QUOTA_EXCEEDED",
    ),
    Code.RATE_LIMITS_EXCEEDED: ("RequestLimitExceeded", "Throttling", "Too many requests"),
    Code.DEPENDENCIES: (
        "PendingVerification",
        "Access Not Configured",
        "accessNotConfigured",
        "DependencyViolation",
        "OptInRequired",
        "Conflict",
        "inactive billing state",
        "timeout while waiting for state to become",
        "InvalidCidrBlock",
        "already busy for",
        "InsufficientFreeAddressesInSubnet",
        "internal server error",
        "A resource with the ID",
        "currently associated with another service",
    ),
    Code.RETRYABLE_DEPENDENCIES: ("RetryableError",),
    Code.RESOURCES_DEPLETED: (
        "InsufficientInstanceCapacity",
        "out of stock",
        "not available in the current hardware cluster",
    ),
    Code.CONFIGURATION_PROBLEM: (
        "not supported in your requested Availability Zone",
        "InvalidParameterValue",
        "notFound",
        "InvalidSubnet",
        "Invalid value",
        "violates constraint",
        "no attached internet gateway found",
        "invalid VPC attributes",
        "unrecognized feature gate",
        "runtime-config invalid key",
        "strict decoder error",
        "not allowed to configure an unsupported",
        "error during apply of object .* is invalid:",
        "duplicate zones",
        "overlapping zones",
    ),
    Code.RETRYABLE_CONFIGURATION_PROBLEM: (
        "is misconfigured and requires zero voluntary evictions",
        r"SDK\.CanNotResolveEndpoint",
        "The requested configuration is currently not supported",
    ),
}
_BY_TEXT: Final = {
    code: re.compile("|".join(patterns), re.IGNORECASE) for code, patterns in _PATTERNS.items()
}
_NEEDS_A_PERSON: Final = (CredentialsInvalid, Unauthorized, QuotaExceeded, InvalidRequest)


def codes_of_error(error: Exception) -> tuple[Code, ...]:
    """Return the distinct codes of an error, or of all errors in a group."""
    found = (code for leaf in leaves(error) for code in _codes_of_one(leaf))
    return tuple(dict.fromkeys(found))


def codes_of_text(text: str) -> tuple[Code, ...]:
    """Return the codes that a text indicates, ignoring case."""
    return tuple(code for code, pattern in _BY_TEXT.items() if pattern.search(text))


def diagnose(error: Exception) -> Diagnosis:
    """Classify an error of a task.

    A task is not retried if only a person can fix the problem.
    """
    codes = codes_of_error(error)
    is_ours = isinstance(error, ExtensionError) and Code.CONFIGURATION_PROBLEM in codes
    return Diagnosis(
        may_pass=not is_ours and not isinstance(error, _NEEDS_A_PERSON),
        codes=tuple(map(str, codes)),
    )


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors of AWS, flows and configs into errors for the user, with codes.

    Raises:
        ExtensionError: replaces these errors.
    """
    try:
        yield
    except FlowFailed as failed:
        codes = tuple(map(Code, failed.codes))
        raise ExtensionError(str(failed), *codes) from failed
    except Malformed as malformed:
        raise ExtensionError(str(malformed), Code.CONFIGURATION_PROBLEM) from malformed
    except (CloudError, ExceptionGroup) as error:
        if not all(isinstance(leaf, CloudError) for leaf in leaves(error)):
            raise
        raise ExtensionError(sentence_of(error), *codes_of_error(error)) from error


def _codes_of_one(error: Exception) -> tuple[Code, ...]:
    if isinstance(error, CloudError) and error.code in _BY_AWS_CODE:
        return (_BY_AWS_CODE[error.code],)
    return codes_of(error) or codes_of_text(str(error))
