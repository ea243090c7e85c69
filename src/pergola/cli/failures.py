"""Errors of commands as one sentence for users: what happened, where, and what to do next."""

from typing import TYPE_CHECKING, Final

from pergola.runtime.failures import is_ours, leaves, sentence_of

if TYPE_CHECKING:
    from pergola.kube.errors import Sender

_OTHERS: Final = "choose another cluster or user with --context or --kubeconfig"


def is_expected(error: Exception) -> bool:
    """Return whether the text of an error is meant for users: also that of the system is."""
    return all(isinstance(leaf, OSError) or is_ours(leaf) for leaf in leaves(error))


def sentence(error: Exception) -> str:
    """Return the text of an expected error."""
    from pergola.kube.errors import Unauthorized, Unreachable

    only = _only(error)
    if isinstance(only, Unauthorized) and only.sender:
        return (
            f"{only.sender.server} does not accept the credentials of {_who(only.sender)}: renew "
            f"them, or {_OTHERS}"
        )
    if isinstance(only, Unreachable) and only.sender:
        return f"{only} (as {_who(only.sender)}): check that the server runs, or {_OTHERS}"
    return sentence_of(error) if isinstance(error, ExceptionGroup) else str(error)


def _only(error: Exception) -> Exception:
    """Return the error of a group whose errors are all of one sort."""
    found = leaves(error)
    return found[0] if len({type(leaf) for leaf in found}) == 1 else error


def _who(sender: "Sender") -> str:
    user = f'user "{sender.user}"' if sender.user else "an anonymous user"
    return f'{user}, context "{sender.context}"' if sender.context else user
