"""The errors of callers of extensions (spec 40 §4.1).

CallerError         root: the request was rejected or did not complete
├── NotReady        a resource did not become ready
├── NotMigrated     it was not migrated away
├── NotDeleted      it still exists
└── Unrestorable    a ShootState lacks what the resource needs
"""

from collections.abc import Iterable

from pergola.extension_api.errors import Code, ExtensionError


class CallerError(ExtensionError):
    """The request was rejected or did not complete; the text is for the user."""


class NotReady(CallerError):
    """A resource did not become ready; `codes` are those of its last error."""


class NotMigrated(CallerError):
    """A resource was not migrated away; `codes` are those of its last error."""


class NotDeleted(CallerError):
    """A resource still exists; `codes` are those of its last error."""


class Unrestorable(CallerError):
    """A ShootState cannot be read, or lacks an object that the state of a resource refers to."""


def known_codes(texts: Iterable[object]) -> tuple[Code, ...]:
    """Return the known codes among the texts of an object."""
    known = {code.value: code for code in Code}
    return tuple(
        dict.fromkeys(known[text] for text in texts if isinstance(text, str) and text in known)
    )
