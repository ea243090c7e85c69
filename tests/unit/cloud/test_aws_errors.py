"""AWS's failures, translated into our own classes and messages."""

import pytest
from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from pergola.cloud.aws.codes import kind_of_error
from pergola.cloud.aws.failures import failure
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


def refused(code: str, message: str = "", status: int = 400) -> CloudError:
    answer = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return made(aws.ClientError(answer, "DescribeVpcs"))


def made(error: Exception) -> CloudError:
    found = failure(error, "ec2", "DescribeVpcs", "eu-west-1")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AuthFailure", CredentialsInvalid),
        ("InvalidClientTokenId", CredentialsInvalid),
        ("SignatureDoesNotMatch", CredentialsInvalid),
        ("ExpiredToken", CredentialsInvalid),
        ("UnauthorizedOperation", Unauthorized),
        ("AccessDenied", Unauthorized),
        ("RequestLimitExceeded", Throttled),
        ("Throttling", Throttled),
        ("VpcLimitExceeded", QuotaExceeded),
        ("LimitExceeded", QuotaExceeded),
        ("RulesPerSecurityGroupLimitExceeded", QuotaExceeded),
        ("InsufficientInstanceCapacity", ResourcesDepleted),
        ("DependencyViolation", DependencyProblem),
        ("DeleteConflict", DependencyProblem),
        ("InsufficientFreeAddressesInSubnet", DependencyProblem),
        ("InvalidIPAddress.InUse", DependencyProblem),
        ("InvalidSubnet.Conflict", DependencyProblem),
        ("InvalidVpcID.NotFound", NotFound),
        ("InvalidGroup.NotFound", NotFound),
        ("LoadBalancerNotFound", NotFound),
        ("NoSuchEntity", NotFound),
        ("InvalidPermission.Duplicate", AlreadyExists),
        ("EntityAlreadyExists", AlreadyExists),
        ("RouteAlreadyExists", AlreadyExists),
        ("DuplicateLoadBalancerName", AlreadyExists),
        ("InvalidParameterValue", InvalidRequest),
        ("InvalidVpcID.Malformed", InvalidRequest),
        ("InternalError", Unreachable),
        ("ServiceUnavailable", Unreachable),
        ("SomethingNew", CloudError),
    ],
)
def test_every_code_has_its_class(code: str, kind: type[CloudError]) -> None:
    assert kind_of_error(code, 400) is kind


@pytest.mark.parametrize(("status", "kind"), [(429, Throttled), (502, Unreachable)])
def test_an_unknown_code_is_judged_by_the_status(status: int, kind: type[CloudError]) -> None:
    assert kind_of_error("SomethingNew", status) is kind


def test_an_error_says_what_was_requested_what_is_wrong_and_what_to_do() -> None:
    error = refused("UnauthorizedOperation", "You are not authorized.", 403)
    assert str(error) == (
        "ec2 DescribeVpcs in eu-west-1: the credentials do not permit it; allow ec2:DescribeVpcs "
        "in their IAM policy (UnauthorizedOperation: You are not authorized)"
    )
    assert (error.code, error.call) == ("UnauthorizedOperation", "ec2 DescribeVpcs in eu-west-1")


def test_encoded_authorization_messages_are_left_out() -> None:
    error = refused("UnauthorizedOperation", "No. Encoded authorization failure message: x9 y8")
    assert "x9" not in str(error)


def test_an_authentication_error_shows_no_part_of_the_keys() -> None:
    text = "The canonical string for this request should have been AKIA123 / secret"
    error = refused("SignatureDoesNotMatch", text, 403)
    assert "AKIA123" not in str(error)
    assert "SignatureDoesNotMatch" in str(error)


def test_long_messages_are_truncated() -> None:
    assert len(str(refused("InvalidParameterValue", "x" * 10_000))) < 1_000


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (aws.NoCredentialsError(), CredentialsInvalid, "name a Secret"),
        (
            aws.CredentialRetrievalError(provider="web-identity", error_msg="token=abc"),
            CredentialsInvalid,
            "fix their provider",
        ),
        (aws.EndpointConnectionError(endpoint_url="https://x"), Unreachable, "check the network"),
        (aws.ReadTimeoutError(endpoint_url="https://x"), Unreachable, "ReadTimeoutError"),
        (ConnectionResetError("reset"), Unreachable, "ConnectionResetError"),
        (ResponseParserError("<html>"), Unreachable, "ResponseParserError"),
        (aws.ParamValidationError(report="Unknown parameter"), InvalidRequest, "Unknown parameter"),
        (aws.InvalidRegionError(region_name="eu west"), InvalidRequest, "eu west"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_failures_without_a_response_have_classes_too(
    error: Exception, kind: type[CloudError], said: str
) -> None:
    found = made(error)
    assert type(found) is kind
    assert said in str(found)
    assert "token=abc" not in str(found)


def test_a_malformed_response_is_not_a_network_error() -> None:
    error = made(ResponseParserError("<html>"))
    assert "check the network" not in str(error)
    assert "the answer does not come from AWS" in str(error)
    assert error.may_have_happened


def test_a_resource_that_already_exists_is_reported_with_what_to_do() -> None:
    error = refused("Resource.AlreadyAssociated", "resource igw-1 is already attached")
    assert str(error) == (
        "ec2 DescribeVpcs in eu-west-1: it is already associated with something else; remove "
        "that association, or use another resource "
        "(Resource.AlreadyAssociated: resource igw-1 is already attached)"
    )


def test_other_exceptions_are_not_translated() -> None:
    assert failure(KeyError("x"), "ec2", "DescribeVpcs", "eu-west-1") is None


def test_only_throttling_and_outages_are_transient() -> None:
    transient = {kind for kind in CloudError.__subclasses__() if kind.is_transient}
    assert transient == {Throttled, Unreachable}


def test_a_request_that_was_never_sent_cannot_have_succeeded() -> None:
    assert not made(aws.ConnectTimeoutError(endpoint_url="https://x")).may_have_happened
    assert made(aws.ReadTimeoutError(endpoint_url="https://x")).may_have_happened
    assert refused("InternalError", status=500).may_have_happened
    assert not refused("RequestLimitExceeded", status=503).may_have_happened
