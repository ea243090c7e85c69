"""What a caller of extensions is told when something does not come about (spec 40 §4.1).

CallerError         root: what was asked for cannot be asked, or did not come about
├── NotReady        a resource did not become ready
├── NotMigrated     it was not migrated away
├── NotDeleted      it is still there
└── Unrestorable    a ShootState lacks what the resource needs
"""

from collections.abc import Iterable

from pergola.extension_api.errors import Code, ExtensionError


class CallerError(ExtensionError):
    """What was asked for cannot be asked, or did not come about; the text is for the user."""


class NotReady(CallerError):
    """A resource did not become ready; `codes` are those of its last error."""


class NotMigrated(CallerError):
    """A resource was not migrated away; `codes` are those of its last error."""


class NotDeleted(CallerError):
    """A resource is still there; `codes` are those of its last error."""


class Unrestorable(CallerError):
    """A ShootState cannot be read, or lacks an object that the state of a resource refers to."""


def known_codes(texts: Iterable[object]) -> tuple[Code, ...]:
    """The codes among the texts that an object carries; what is no known code is left out."""
    known = {code.value: code for code in Code}
    return tuple(
        dict.fromkeys(known[text] for text in texts if isinstance(text, str) and text in known)
    )
