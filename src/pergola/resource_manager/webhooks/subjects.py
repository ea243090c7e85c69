"""What the mutating webhooks are about: registered for it, asked about it, and about nothing else.

One value makes the rule of a registration and guards the handler, so that the two cannot differ.
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
    """A kind, and what happens to its objects.

    Attributes:
        plural: under which name it is served.
        versions: for which of its versions reviews are asked.
    """

    kind: GroupKind
    plural: str
    versions: tuple[str, ...] = ("v1",)
    operations: tuple[Operation, ...] = MUTATED

    @property
    def rule(self) -> Rule:
        """Which requests are reviewed; never those for subresources."""
        return Rule(self.operations, (self.kind.group,), self.versions, (self.plural,))

    def answer(self, request: Request, decide: Callable[[JsonObject], Verdict]) -> Verdict:
        """What `decide` says of the object of a request.

        What the webhook is not about passes, and what is no object of the kind is refused with 400
        (spec 12 §1.2); an `Undecodable` that `decide` raises is such a refusal.
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
        """The same, for those who have to ask somebody else first."""
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
    """The refusal of a request that could not be judged because a look-up failed.

    Code and reason stay those of the API server that was asked; its message stays at the end.

    Args:
        what: what was looked up, for which object, and by which webhook.
    """
    message = f"{what}: {error}"
    if isinstance(error, ApiError):
        return Verdict(allowed=False, code=error.code, reason=error.reason, message=message)
    return denied(message)
