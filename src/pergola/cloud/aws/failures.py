"""Failures of AWS's client library, described in our own words.

The text of a failed authentication is never shown: it may contain keys, or the data they signed.
"""

from typing import Any, Final

from pergola.cloud.aws.codes import kind_of_error
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

NO_CREDENTIALS: Final = (
    "there are no AWS credentials: name a Secret that holds them, set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or give the process an IAM role"
)
_ENCODED: Final = "Encoded authorization failure message"
_LONGEST: Final = 500
_WHAT_TO_DO: Final[dict[type[CloudError], str]] = {
    CredentialsInvalid: "AWS does not accept the credentials; replace them, or enable the region",
    Unauthorized: "the credentials do not permit it; allow {action} in their IAM policy",
    Throttled: "AWS is throttling requests of this account; the request will be retried later",
    QuotaExceeded: "a quota of the account is exhausted; free some, or ask AWS to raise it",
    ResourcesDepleted: "AWS has no capacity left for it; choose another zone or type, or wait",
    DependencyProblem: "another resource must change first",
    NotFound: "it does not exist",
    AlreadyExists: "it already exists",
    InvalidRequest: "AWS does not accept the request; correct the configuration",
    Unreachable: "AWS has a problem; the request will be retried later",
}


_BY_CODE: Final = {
    "Resource.AlreadyAssociated": (
        "it is already associated with something else; remove that association, or use another "
        "resource"
    ),
}


def failure(error: Exception, service: str, operation: str, region: str) -> CloudError | None:
    """Return our error for one of the library, or None if it is a bug."""
    if isinstance(error, CloudError):
        return error
    call = f"{service} {operation} in {region}"
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        return _refused(answer, call, f"{service}:{operation}")
    return _unanswered(error, call)


def _refused(answer: dict[str, Any], call: str, action: str) -> CloudError:
    said = answer.get("Error") or {}
    code = str(said.get("Code") or "unknown")
    status = int((answer.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0)
    kind = kind_of_error(code, status)
    advice = _BY_CODE.get(code) or _WHAT_TO_DO.get(kind, "AWS refused").format(action=action)
    text = "" if kind is CredentialsInvalid else _shown(str(said.get("Message") or ""))
    return kind(
        f"{call}: {advice} ({code}{': ' if text else ''}{text})",
        code=code,
        call=call,
        may_have_happened=kind is Unreachable,
    )


def _unanswered(error: Exception, call: str) -> CloudError | None:
    from botocore import exceptions as aws
    from botocore.parsers import ResponseParserError

    name = type(error).__name__
    connection = (aws.ConnectionError, aws.HTTPClientError, OSError)
    never_sent = (aws.EndpointConnectionError, aws.ConnectTimeoutError, aws.ProxyConnectionError)
    if isinstance(error, (aws.NoCredentialsError, aws.PartialCredentialsError)):
        return CredentialsInvalid(f"{call}: {NO_CREDENTIALS}", code=name, call=call)
    if isinstance(error, (aws.CredentialRetrievalError, aws.ProfileNotFound)):
        text = f"{call}: the AWS credentials cannot be obtained; fix their provider ({name})"
        return CredentialsInvalid(text, code=name, call=call)
    if isinstance(error, ResponseParserError):
        return Unreachable(
            f"{call}: the answer does not come from AWS; AWS, or a proxy on the way to it, has a "
            f"problem, and the request will be retried later ({name})",
            code=name,
            call=call,
            may_have_happened=True,
        )
    if isinstance(error, connection):
        return Unreachable(
            f"{call}: AWS cannot be reached; check the network and the region ({name})",
            code=name,
            call=call,
            may_have_happened=not isinstance(error, never_sent),
        )
    if isinstance(error, (aws.BotoCoreError, ValueError)):
        text = (
            f"{call}: the request cannot be made; correct the configuration ({_shown(str(error))})"
        )
        return InvalidRequest(text, code=name, call=call)
    return None


def _shown(text: str) -> str:
    """Return AWS's text, shortened, and without parts that only AWS can decode."""
    text = " ".join(text.partition(_ENCODED)[0].split()).rstrip(" .")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
