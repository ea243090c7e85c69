"""Lost credentials: their Secrets are missing, but something made with them exists (pure)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pergola.api.objects import JsonObject, Key
from pergola.secrets_manager.configs import SecretData
from pergola.secrets_manager.errors import SecretsManagerError

Recover: TypeAlias = Callable[[Sequence[JsonObject], Sequence[SecretData]], SecretData | None]
"""Returns the data of a lost Secret from Secrets with copies and the data of its config's other
Secrets; None if that is ambiguous."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Irreplaceable:
    """The evidence that a missing Secret is lost rather than new, and the way back.

    Attributes:
        use: What only this credential can do; completes "its data is needed to …".
        records: Where its use is recorded, such as a field of a status; empty if it is not.
        copies: A label selector of Secrets that contain the credential.
        recover: Recovers the credential from these copies.
        volumes: The prefix of the names of PersistentVolumeClaims with data that needs it.
        is_rotating: Whether a rotation generates it now. It is new then if an older Secret of its
            config exists.
        remedy: How to restore it.
        annotation: The annotation with which users accept the loss.
        given_up: The name of the Secret in that annotation.
    """

    use: str
    records: tuple[str, ...] = ()
    copies: str = ""
    recover: Recover | None = None
    volumes: str = ""
    is_rotating: bool = False
    remedy: str
    annotation: str
    given_up: str = ""


class SecretLost(SecretsManagerError):
    """The Secret of an irreplaceable credential is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What exists of a credential whose Secret is missing.

    Attributes:
        older: The data of the other Secrets of its config.
        copies: The Secrets that contain the credential.
        bundle: The bundle that publishes a part of it that no Secret of its config has.
        claims: The PersistentVolumeClaims with data that needs it.
    """

    older: Sequence[SecretData] = ()
    copies: Sequence[JsonObject] = ()
    bundle: Key | None = None
    claims: Sequence[Key] = ()

    def sentences(self) -> Iterator[str]:
        """Yield what proves that the credential existed."""
        yield from (f"Secret {Key.of(copy)} contains a copy" for copy in self.copies)
        if self.bundle is not None:
            yield f"Secret {self.bundle} publishes it"
        yield from (
            f"PersistentVolumeClaim {claim} has the data of an etcd" for claim in self.claims
        )


def recovered(irreplaceable: Irreplaceable, evidence: Evidence, name: str) -> SecretData | None:
    """Return the data of a missing Secret, if its copies contain it and it is not given up."""
    if irreplaceable.recover is None or irreplaceable.is_rotating or irreplaceable.given_up == name:
        return None
    return irreplaceable.recover(evidence.copies, evidence.older)


def is_replacement(key: Key, irreplaceable: Irreplaceable, evidence: Evidence) -> bool:
    """Return whether a new Secret replaces a lost one; False if nothing proves that there was one.

    Args:
        key: The missing Secret.

    Raises:
        SecretLost: It is lost, and not given up.
    """
    if irreplaceable.is_rotating and evidence.older:
        return False
    found = [f"{record} records its use" for record in irreplaceable.records]
    found += evidence.sentences()
    if not found:
        return False
    if irreplaceable.given_up == key.name:
        return True
    subject = f"Secret {key}"
    if irreplaceable.is_rotating:
        subject = f"the Secret that a rotation replaces with {key}"
    raise SecretLost(
        f"{subject} is lost, and its data is needed to {irreplaceable.use} "
        f"({'; '.join(found)}): {irreplaceable.remedy}{_other_ways(evidence)}. Only if it is lost "
        f"for good, generate a new one with the annotation {irreplaceable.annotation}={key.name}"
    )


def _other_ways(evidence: Evidence) -> str:
    if evidence.copies:
        return f", or recover it from {_list(evidence.copies)}"
    if evidence.claims:
        names = " and ".join(str(claim) for claim in evidence.claims)
        return f", or delete the claim {names} to begin with an empty etcd"
    return ""


def _list(copies: Sequence[JsonObject]) -> str:
    return "the copy" if len(copies) == 1 else "one of the copies"
