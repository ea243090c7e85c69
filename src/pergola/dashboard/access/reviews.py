"""Reviews by the API server: the user of a token, and what that user may list."""

from dataclasses import dataclass, field

from pergola.api.objects import JsonObject, map_at
from pergola.kube.client import Client
from pergola.kube.discovery import Resource
from pergola.kube.errors import KubeError


class Unreviewed(KubeError):
    """The user of a token cannot be determined; the text is for the person who sent it."""


@dataclass(frozen=True, slots=True)
class User:
    """A user as known to the API server.

    Attributes:
        identity: `username`, `uid`, `groups` and `extra` from a TokenReview.
    """

    name: str
    identity: JsonObject = field(repr=False)


async def user_of(client: Client, token: str) -> User | None:
    """Return the user of a token; None if the API server does not accept it.

    Raises:
        Unreviewed: The API server cannot be reached.
    """
    review: JsonObject = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {},
        "spec": {"token": token},
    }
    try:
        answer = await client.create(review)
    except KubeError as error:
        raise Unreviewed(f"the API server cannot be asked who you are: {error}") from error
    identity = map_at(answer, "status", "user")
    name = str(identity.get("username") or "")
    is_known = map_at(answer, "status").get("authenticated") is True and name
    return User(name, identity) if is_known else None


async def may_list(client: Client, user: User, resource: Resource, namespace: str) -> bool:
    """Return whether a user may list a kind in a namespace, or everywhere if it is empty.

    Raises:
        KubeError: The API server cannot be reached.
    """
    attributes = {
        "group": resource.gvk.group,
        "version": resource.gvk.version,
        "resource": resource.plural,
        "verb": "list",
        **({"namespace": namespace} if namespace else {}),
    }
    identity = user.identity
    known = {name: identity[name] for name in ("uid", "groups", "extra") if identity.get(name)}
    answer = await client.create(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {"user": user.name, **known, "resourceAttributes": attributes},
        }
    )
    return map_at(answer, "status").get("allowed") is True
