"""Errors of concurrent work as text."""

from collections.abc import Sequence
from typing import Self


class Failures(ExceptionGroup[Exception]):
    """Errors of concurrent work; the text consists of theirs, at any depth.

    The text of a built-in group is its message and the number of its errors, which hides the cause
    from statuses, Events and logs.
    """

    def __str__(self) -> str:
        return sentence_of(self)

    def derive(self, errors: Sequence[Exception], /) -> Self:  # type: ignore[override] # one type
        """Return a group of the same type, for `split` and `except*`."""
        return type(self)(self.message, errors)


def leaves(error: Exception) -> list[Exception]:
    """Return the errors in a group, at any depth, or the error itself."""
    if isinstance(error, ExceptionGroup):
        return [leaf for part in error.exceptions for leaf in leaves(part)]
    return [error]


def is_ours(error: Exception) -> bool:
    """Return whether the text of an error is meant for users: that of all our root errors is."""
    return all(
        any(kind.__module__.startswith("pergola.") for kind in type(leaf).__mro__)
        for leaf in leaves(error)
    )


def sentence_of(error: Exception) -> str:
    """Return the text of an error, prefixed with its type if the error is unexpected.

    The texts of a group of errors are joined.
    """
    return "; ".join(dict.fromkeys(_text(leaf) for leaf in leaves(error)))


def only_error(error: Exception) -> Exception:
    """Return the only error in a group, at any depth; a group of several as it is."""
    found = leaves(error)
    return found[0] if len(found) == 1 else error


def _text(error: Exception) -> str:
    text = str(error).strip()
    if type(error).__module__ != "builtins" and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
