"""The settings of an instance, and the request in a Secret, or every mistake in it.

Mistakes are found before any call of an API server. Only a change of the Secret can fix them, so
all are reported at once, each with its field, and nothing is retried until the Secret changes
(spec 11, Beyond).
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

import orjson

from pergola.api.durations import DurationError, parse_duration
from pergola.api.marks import is_truthy
from pergola.api.objects import Key
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.observe import Holding, SeenSecret

DEFAULT_EXPIRATION: Final = timedelta(hours=12)
SHORTEST_EXPIRATION: Final = timedelta(minutes=10)
LONGEST_EXPIRATION: Final = timedelta(seconds=2**32)
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one instance (spec 11 §1.3).

    Attributes:
        resource_class: Serve only Secrets of this class; `*` for all.
        source_namespaces: The namespaces to watch Secrets in; all if empty.
        target_namespaces: The namespaces to watch ServiceAccounts in; all if empty. Others are read
            on demand.
        audiences: For issued tokens; the target API server's own if empty.
        fixed_namespace: The namespace of all ServiceAccounts; empty if each Secret names its own.
        ca_bundle: The CA of the target cluster, PEM; None if unknown.
        minimum_interval: The seconds before a mere doubt causes another token for the same Secret,
            in which a Secret never gets more than five.
    """

    workers: int = 5
    resource_class: str = names.DEFAULT_CLASS
    source_namespaces: Collection[str] = ()
    target_namespaces: Collection[str] = ()
    audiences: tuple[str, ...] = ("gardener",)
    fixed_namespace: str = ""
    ca_bundle: bytes | None = None
    minimum_interval: float = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    """The request in a Secret.

    Attributes:
        account: The ServiceAccount in the target cluster.
        labels: The labels that the ServiceAccount must have.
        target: The Secret in the target cluster that receives the token; None for the Secret
            itself.
        injects_ca: Whether to add the CA of the target cluster.
    """

    account: Key
    labels: dict[str, str]
    expiration_seconds: int
    target: Key | None
    injects_ca: bool


class Mistake(NamedTuple):
    """A field of a Secret that must be corrected."""

    field: str
    problem: str

    @classmethod
    def of(cls, annotation: str, problem: str) -> "Mistake":
        """Return a mistake in an annotation."""
        return cls(f"metadata.annotations[{annotation}]", problem)

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


class MistakesError(Exception):
    """A Secret must be corrected before it can be served."""

    def __init__(self, *mistakes: Mistake) -> None:
        self.mistakes = mistakes
        super().__init__("; ".join(map(str, mistakes)))


def read_request(seen: SeenSecret, fixed_namespace: str = "", *, has_ca: bool = True) -> Request:
    """Return the request in a Secret.

    Args:
        fixed_namespace: The namespace of all ServiceAccounts; empty to read the annotation.
        has_ca: Whether the CA to inject is known.

    Raises:
        MistakesError: An annotation is missing or malformed.
    """
    mistakes: list[Mistake] = []
    namespace = fixed_namespace or _named(seen, names.NAMESPACE, _NAMESPACE, mistakes)
    request = Request(
        account=Key(namespace, _named(seen, names.NAME, _NAME, mistakes)),
        labels=_labels(seen, mistakes),
        expiration_seconds=_expiration_seconds(seen, mistakes),
        target=_target(seen, mistakes),
        injects_ca=has_ca and is_truthy(seen.annotations.get(names.INJECT_CA)),
    )
    mistakes += kubeconfig_mistakes(seen.holding, request)
    if mistakes:
        raise MistakesError(*mistakes)
    return request


def kubeconfig_mistakes(holding: Holding, request: Request, where: str = "") -> list[Mistake]:
    """Return why the kubeconfig in a Secret cannot contain the credentials; empty if it can."""
    problem = holding.problem or (holding.cluster_problem if request.injects_ca else None)
    return [Mistake(f"{where}data[{names.KEY_KUBECONFIG}]", problem)] if problem else []


def _target(seen: SeenSecret, mistakes: list[Mistake]) -> Key | None:
    """Return the target if both annotations are set; one alone has no effect."""
    if not (
        seen.annotations.get(names.TARGET_NAME) and seen.annotations.get(names.TARGET_NAMESPACE)
    ):
        return None
    namespace = _named(seen, names.TARGET_NAMESPACE, _NAMESPACE, mistakes)
    return Key(namespace, _named(seen, names.TARGET_NAME, _NAME, mistakes))


def _named(seen: SeenSecret, name: str, pattern: re.Pattern[str], mistakes: list[Mistake]) -> str:
    value = seen.annotations.get(name, "")
    if not value:
        mistakes.append(Mistake.of(name, "is required; set it to a name"))
    elif pattern.fullmatch(value) is None:
        mistakes.append(Mistake.of(name, f'"{value}" is not a valid name'))
    return value


def _labels(seen: SeenSecret, mistakes: list[Mistake]) -> dict[str, str]:
    raw = seen.annotations.get(names.LABELS) or "null"
    try:
        labels = orjson.loads(raw)
    except orjson.JSONDecodeError:
        labels = raw
    if labels is None:
        return {}
    if isinstance(labels, dict) and all(isinstance(value, str) for value in labels.values()):
        return labels
    problem = f"must be a JSON object of strings, not {raw!r}"
    mistakes.append(Mistake.of(names.LABELS, problem))
    return {}


def _expiration_seconds(seen: SeenSecret, mistakes: list[Mistake]) -> int:
    raw = seen.annotations.get(names.EXPIRATION)
    if raw is None:
        return int(DEFAULT_EXPIRATION.total_seconds())
    try:
        expiration = parse_duration(raw)
    except DurationError as error:
        mistakes.append(Mistake.of(names.EXPIRATION, str(error)))
        return 0
    if not SHORTEST_EXPIRATION <= expiration <= LONGEST_EXPIRATION:
        # The API server would reject it as well.
        problem = f'invalid duration "{raw}": tokens live 10m to 2^32 seconds'
        mistakes.append(Mistake.of(names.EXPIRATION, problem))
    return expiration // timedelta(seconds=1)
