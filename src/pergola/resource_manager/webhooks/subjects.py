"""The kinds that mutating webhooks review.

One value creates the registration's rule and guards the handler, so that they cannot differ.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from pergola.admission.registration import Rule
from pergola.admission.review import Operation, Request, Verdict, allowed, denied, errored
from pergola.api.objects import GroupKind, JsonObject
from pergola.kube.errors import ApiError, KubeError
from pergola.resource_manager.webhooks.decoding import Undecodable

MUTATED: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE")


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind, and the operations on it to review.

    Attributes:
        plural: the name of its API.
        versions: the versions to review.
    """

    kind: GroupKind
    plural: str
    versions: tuple[str, ...] = ("v1",)
    operations: tuple[Operation, ...] = MUTATED

    @property
    def rule(self) -> Rule:
        """The rule for the registration; never for subresources."""
        return Rule(self.operations, (self.kind.group,), self.versions, (self.plural,))

    def answer(self, request: Request, decide: Callable[[JsonObject], Verdict]) -> Verdict:
        """Return the decision about the object of a request.

        Other operations are allowed; an object of another kind is refused with 400 (spec 12 §1.2),
        as is one for which `decide` raises `Undecodable`.
        """
        obj = self._object(request)
        if isinstance(obj, Verdict):
            return obj
        try:
            return decide(obj)
        except Undecodable as error:
            return self._undecodable(str(error))

    async def answer_later(
        self, request: Request, decide: Callable[[JsonObject], Awaitable[Verdict]]
    ) -> Verdict:
        """Like `answer`, with a decision that has to wait."""
        obj = self._object(request)
        if isinstance(obj, Verdict):
            return obj
        try:
            return await decide(obj)
        except Undecodable as error:
            return self._undecodable(str(error))

    def _object(self, request: Request) -> JsonObject | Verdict:
        if request.operation not in self.operations:
            return allowed(because=f"{request.operation} is not reviewed")
        if request.subresource:
            return allowed(because=f"the subresource {request.subresource} is not reviewed")
        if request.kind.group_kind != self.kind:
            return self._undecodable(f"it is a {request.kind.group_kind}")
        if not isinstance(request.object, dict):
            return self._undecodable("the request has no object")
        return request.object

    def _undecodable(self, problem: str) -> Verdict:
        return errored(HTTPStatus.BAD_REQUEST, f"cannot decode the {self.kind}: {problem}")


PODS: Final = Subject(GroupKind("", "Pod"), "pods", operations=("CREATE",))


def refused(error: KubeError, what: str) -> Verdict:
    """Refuse a request because a lookup failed, with the API server's code, reason and message.

    The message begins with that of the API server, as clients of the original expect.

    Args:
        what: the webhook, and the read that failed.
    """
    message = f"{error} ({what})"
    if isinstance(error, ApiError):
        return Verdict(allowed=False, code=error.code, reason=error.reason, message=message)
    return denied(message)
