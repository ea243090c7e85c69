"""Errors of commands as one sentence for users: what happened, where, and what to do next."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pergola.kube.errors import Sender

_OTHERS: Final = "choose another cluster or user with --context or --kubeconfig"


def is_expected(error: Exception) -> bool:
    """Return whether the text of an error is meant for users: all our rooms' root errors are."""
    if isinstance(error, ExceptionGroup):
        return all(map(is_expected, error.exceptions))
    return isinstance(error, OSError) or any(
        kind.__module__.startswith("pergola.") for kind in type(error).__mro__
    )


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
    if isinstance(error, ExceptionGroup):
        from pergola.runtime.failures import sentence_of

        return sentence_of(error)
    return str(error)


def _only(error: Exception) -> Exception:
    """Return the error of a group whose errors are all of one sort."""
    leaves = [*_leaves(error)]
    return leaves[0] if len({type(leaf) for leaf in leaves}) == 1 else error


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _who(sender: "Sender") -> str:
    user = f'user "{sender.user}"' if sender.user else "an anonymous user"
    return f'{user}, context "{sender.context}"' if sender.context else user
