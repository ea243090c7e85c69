"""The error codes of AWS's errors: spec 30 §2 item 8."""

import pytest

from pergola.api.schema.read import Malformed
from pergola.api.schema.validate import Finding
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
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow import FlowFailed, Graph, Settings, run
from pergola.providers.aws.codes import codes_of_error, codes_of_text, diagnose, explained


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CredentialsInvalid("no", code="AuthFailure"), Code.UNAUTHENTICATED),
        (CredentialsInvalid("no", code="ExpiredToken"), Code.UNAUTHENTICATED),
        (CredentialsInvalid("no", code="InvalidClientTokenId"), Code.UNAUTHORIZED),
        (CredentialsInvalid("no", code="SignatureDoesNotMatch"), Code.UNAUTHORIZED),
        (Unauthorized("no"), Code.UNAUTHORIZED),
        (Throttled("no"), Code.RATE_LIMITS_EXCEEDED),
        (QuotaExceeded("no"), Code.QUOTA_EXCEEDED),
        (ResourcesDepleted("no"), Code.RESOURCES_DEPLETED),
        (DependencyProblem("no"), Code.DEPENDENCIES),
        (Unreachable("no"), Code.RETRYABLE_DEPENDENCIES),
        (NotFound("no"), Code.CONFIGURATION_PROBLEM),
        (InvalidRequest("no"), Code.CONFIGURATION_PROBLEM),
        (AlreadyExists("no", code="Resource.AlreadyAssociated"), Code.DEPENDENCIES),
        (ExtensionError("no", Code.CLEANUP), Code.CLEANUP),
    ],
)
def test_an_error_is_classified_by_its_class_before_its_text(error: Exception, code: Code) -> None:
    assert codes_of_error(error) == (code,)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("authfailure: not you", {Code.UNAUTHENTICATED}),
        ("InvalidSecretAccessKey", {Code.UNAUTHENTICATED}),
        ("you are UNAUTHORIZED", {Code.UNAUTHORIZED}),
        ("AccessDenied by a policy", {Code.UNAUTHORIZED}),
        ("VpcLimitExceeded", {Code.QUOTA_EXCEEDED}),
        ("SecurityGroupsPerInterfaceLimitExceeded", {Code.QUOTA_EXCEEDED}),
        ("RequestLimitExceeded", {Code.RATE_LIMITS_EXCEEDED}),
        ("Quota for IPs was exceeded", {Code.QUOTA_EXCEEDED}),
        ("Throttling: rate", {Code.RATE_LIMITS_EXCEEDED}),
        ("too many requests", {Code.RATE_LIMITS_EXCEEDED}),
        ("DependencyViolation", {Code.DEPENDENCIES}),
        ("DeleteConflict", {Code.DEPENDENCIES}),
        ("an internal server error occurred", {Code.DEPENDENCIES}),
        ("RetryableError", {Code.RETRYABLE_DEPENDENCIES}),
        ("InsufficientFreeAddressesInSubnet", {Code.DEPENDENCIES}),
        ("Access Not Configured", {Code.DEPENDENCIES}),
        ("accessNotConfigured", {Code.DEPENDENCIES}),
        ("the account is in an inactive billing state", {Code.DEPENDENCIES}),
        ("timeout while waiting for state to become 'available'", {Code.DEPENDENCIES}),
        ("InsufficientInstanceCapacity", {Code.RESOURCES_DEPLETED}),
        ("out of stock", {Code.RESOURCES_DEPLETED}),
        ("NatGatewayNotFound", {Code.CONFIGURATION_PROBLEM}),
        ("invalid VPC attributes", {Code.CONFIGURATION_PROBLEM}),
        (
            "Unsupported: m7i.large is not supported in your requested Availability Zone (a).",
            {Code.CONFIGURATION_PROBLEM},
        ),
        ("spec.x violates constraint", {Code.CONFIGURATION_PROBLEM}),
        ("unrecognized feature gate: X", {Code.CONFIGURATION_PROBLEM}),
        ("runtime-config invalid key x", {Code.CONFIGURATION_PROBLEM}),
        ("not allowed to configure an unsupported volume type", {Code.CONFIGURATION_PROBLEM}),
        ("error during apply of object v1/Pod/x is invalid: y", {Code.CONFIGURATION_PROBLEM}),
        ("SDK.CanNotResolveEndpoint", {Code.RETRYABLE_CONFIGURATION_PROBLEM}),
        ("SDKxCanNotResolveEndpoint", set()),
        ("all is well", set()),
    ],
)
def test_codes_are_recognized_in_texts(text: str, codes: set[Code]) -> None:
    assert set(codes_of_text(text)) == codes


@pytest.mark.parametrize("kind", [CloudError, AlreadyExists])
def test_an_error_without_a_code_by_class_is_classified_by_its_text(kind: type[CloudError]) -> None:
    assert codes_of_error(kind("some Conflict")) == (Code.DEPENDENCIES,)
    assert codes_of_error(kind("something else")) == ()


def test_a_group_has_the_codes_of_all_its_errors_once() -> None:
    group = ExceptionGroup("several", [Throttled("a"), Unauthorized("b"), Throttled("c")])

    assert codes_of_error(group) == (Code.RATE_LIMITS_EXCEEDED, Code.UNAUTHORIZED)


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [
        (Throttled("later"), True),
        (Unreachable("later"), True),
        (DependencyProblem("later"), True),
        (NotFound("not yet"), True),
        (ValueError("who knows"), True),
        (QuotaExceeded("ask for more"), False),
        (Unauthorized("ask for permission"), False),
        (CredentialsInvalid("replace them"), False),
        (InvalidRequest("correct it"), False),
        (ExtensionError("correct it", Code.CONFIGURATION_PROBLEM), False),
        (ExtensionError("wait", Code.DEPENDENCIES), True),
    ],
)
def test_a_task_is_not_retried_if_the_user_must_act(error: Exception, may_pass: bool) -> None:
    assert diagnose(error).may_pass is may_pass


async def test_a_failed_flow_is_reported_with_the_codes_of_its_tasks() -> None:
    async def create() -> None:
        raise QuotaExceeded("ec2 CreateVpc in eu-west-1: a quota is exhausted")

    graph = Graph("creation")
    graph.add("ensure VPC", create)
    with pytest.raises(ExtensionError) as caught, explained():
        await run(graph, settings=Settings(diagnose=diagnose))

    assert str(caught.value) == (
        'failed to "ensure VPC": ec2 CreateVpc in eu-west-1: a quota is exhausted'
    )
    assert caught.value.codes == (Code.QUOTA_EXCEEDED,)
    assert isinstance(caught.value.__cause__, FlowFailed)


@pytest.mark.parametrize(
    ("error", "text", "codes"),
    [
        (Throttled("slower"), "slower", (Code.RATE_LIMITS_EXCEEDED,)),
        (
            ExceptionGroup("two", [Throttled("slower"), Unauthorized("not you")]),
            "slower; not you",
            (Code.RATE_LIMITS_EXCEEDED, Code.UNAUTHORIZED),
        ),
        (
            Malformed("InfrastructureConfig", [Finding("spec", "wrong")]),
            "InfrastructureConfig: spec: wrong",
            (Code.CONFIGURATION_PROBLEM,),
        ),
    ],
)
def test_other_errors_are_reported_in_one_sentence(
    error: Exception, text: str, codes: tuple[Code, ...]
) -> None:
    with pytest.raises(ExtensionError) as caught, explained():
        raise error

    assert (str(caught.value), caught.value.codes) == (text, codes)


def test_unexpected_exceptions_are_passed_on() -> None:
    with pytest.raises(KeyError), explained():
        raise KeyError("VpcId")
    with pytest.raises(ExceptionGroup), explained():
        raise ExceptionGroup("two", [Throttled("slower"), KeyError("VpcId")])
