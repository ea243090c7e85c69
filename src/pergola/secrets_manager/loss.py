"""Lost credentials: their Secrets are missing, but something made with them exists (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

from pergola.api.objects import Key
from pergola.secrets_manager.errors import SecretsManagerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Irreplaceable:
    """The evidence that a missing Secret is lost rather than new, and the way back.

    Attributes:
        use: What only this credential can do; completes "its data is needed to …".
        records: Where its use is recorded, such as a field of a status; empty if it is not.
        copies: A label selector of Secrets that contain the credential.
        is_rotating: Whether a rotation generates it now. It is new then if an older Secret of its
            config exists.
        remedy: How to restore it.
        annotation: The annotation with which users accept the loss.
        given_up: The name of the Secret in that annotation.
    """

    use: str
    records: tuple[str, ...] = ()
    copies: str = ""
    is_rotating: bool = False
    remedy: str
    annotation: str
    given_up: str = ""


class SecretLost(SecretsManagerError):
    """The Secret of an irreplaceable credential is missing."""


def is_replacement(
    key: Key, irreplaceable: Irreplaceable, *, has_older: bool, copies: Sequence[Key]
) -> bool:
    """Return whether a new Secret replaces a lost one; False if nothing proves that there was one.

    Args:
        key: The missing Secret.
        has_older: Whether another Secret of its config exists.
        copies: Secrets that contain the credential.

    Raises:
        SecretLost: It is lost, and not given up.
    """
    if irreplaceable.is_rotating and has_older:
        return False
    evidence = [f"{record} records its use" for record in irreplaceable.records]
    evidence += [f"Secret {copy} contains a copy" for copy in copies]
    if not evidence:
        return False
    if irreplaceable.given_up == key.name:
        return True
    subject = f"Secret {key}"
    if irreplaceable.is_rotating:
        subject = f"the Secret that a rotation replaces with {key}"
    recover = f", or recover it from {_list(copies)}" if copies else ""
    raise SecretLost(
        f"{subject} is lost, and its data is needed to {irreplaceable.use} "
        f"({'; '.join(evidence)}): {irreplaceable.remedy}{recover}. Only if it is lost for good, "
        f"generate a new one with the annotation {irreplaceable.annotation}={key.name}"
    )


def _list(copies: Sequence[Key]) -> str:
    return "the copy" if len(copies) == 1 else "one of the copies"
