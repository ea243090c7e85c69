"""The errors of actuators, and their codes in `status.lastError` (spec 40 §2.4, §3.3)."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from pergola.cloud.errors import (
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


class Code(StrEnum):
    """The class of an error, for callers and dashboards."""

    UNAUTHENTICATED = "ERR_INFRA_UNAUTHENTICATED"
    UNAUTHORIZED = "ERR_INFRA_UNAUTHORIZED"
    QUOTA_EXCEEDED = "ERR_INFRA_QUOTA_EXCEEDED"
    RATE_LIMITS_EXCEEDED = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
    DEPENDENCIES = "ERR_INFRA_DEPENDENCIES"
    RETRYABLE_DEPENDENCIES = "ERR_RETRYABLE_INFRA_DEPENDENCIES"
    RESOURCES_DEPLETED = "ERR_INFRA_RESOURCES_DEPLETED"
    CLEANUP = "ERR_CLEANUP_CLUSTER_RESOURCES"
    CONFIGURATION_PROBLEM = "ERR_CONFIGURATION_PROBLEM"
    RETRYABLE_CONFIGURATION_PROBLEM = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
    PROBLEMATIC_WEBHOOK = "ERR_PROBLEMATIC_WEBHOOK"


_OF_CLOUDS: Final[Mapping[type[CloudError], Code]] = {
    CredentialsInvalid: Code.UNAUTHENTICATED,
    Unauthorized: Code.UNAUTHORIZED,
    Throttled: Code.RATE_LIMITS_EXCEEDED,
    QuotaExceeded: Code.QUOTA_EXCEEDED,
    ResourcesDepleted: Code.RESOURCES_DEPLETED,
    DependencyProblem: Code.DEPENDENCIES,
    Unreachable: Code.RETRYABLE_DEPENDENCIES,
    NotFound: Code.CONFIGURATION_PROBLEM,
    InvalidRequest: Code.CONFIGURATION_PROBLEM,
}


class ExtensionError(Exception):
    """A problem that the user or the environment must solve; the text is meant for the user.

    Args:
        message: one sentence with the problem, its place and its remedy.
        codes: the classes of the error.
    """

    def __init__(self, message: str, *codes: Code) -> None:
        super().__init__(message)
        self.codes = codes


def configuration_problem(message: str) -> ExtensionError:
    """Return the error for a configuration that only its author can correct."""
    return ExtensionError(message, Code.CONFIGURATION_PROBLEM)


class RequeueAfter(ExtensionError):
    """A request to run again after a time, without backoff; the status shows the cause.

    Args:
        seconds: the time until the next run.
        cause: the reason for waiting; None shows only the time.
    """

    def __init__(self, seconds: float, cause: Exception | None = None) -> None:
        super().__init__(
            f"requeue in {seconds:g}s" if cause is None else str(cause), *codes_of(cause)
        )
        self.seconds = seconds
        self.cause = cause


class SeveralErrors(ExtensionError):
    """Several errors, reported together."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = tuple(errors)
        self.codes = _unique(code for error in errors for code in codes_of(error))


def codes_of(error: BaseException | None) -> tuple[Code, ...]:
    """Return the codes of an error and all errors in it, in order of first appearance."""
    if isinstance(error, BaseExceptionGroup):
        return _unique(code for inner in error.exceptions for code in codes_of(inner))
    if isinstance(error, ExtensionError):
        return error.codes
    if isinstance(error, CloudError) and type(error) in _OF_CLOUDS:
        return (_OF_CLOUDS[type(error)],)
    return codes_of(error.__cause__) if error is not None and error.__cause__ else ()


def _unique(codes: Iterable[Code]) -> tuple[Code, ...]:
    return tuple(dict.fromkeys(codes))
