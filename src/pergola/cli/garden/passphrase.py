"""Passphrases of exports: from a file, the environment or the terminal, never from an argument."""

import getpass
import os
import sys
from pathlib import Path
from typing import Final

VARIABLE: Final = "PERGOLA_PASSPHRASE"
SHORTEST: Final = 12


class PassphraseError(Exception):
    """The passphrase is missing or unusable; the text says what to do."""


def passphrase(file: Path | None) -> str:
    """Return the passphrase of an existing file.

    Raises:
        PassphraseError: There is none.
    """
    found = _given(file)
    if found is None:
        found = _asked("Passphrase of the export: ")
    if not found:
        raise PassphraseError(f"the passphrase is empty{_where(file)}")
    return found


def new_passphrase(file: Path | None) -> str:
    """Return the passphrase for a new file; on a terminal, it is typed twice.

    Raises:
        PassphraseError: There is none, it is too short, or the two differ.
    """
    found = _given(file)
    if found is None:
        found = _asked("New passphrase of the export: ")
        if found != _asked("The same again: "):
            raise PassphraseError("the two passphrases differ: export again")
    if len(found) < SHORTEST:
        raise PassphraseError(
            f"the passphrase has fewer than {SHORTEST} characters{_where(file)}: the file has the "
            "keys of the whole landscape, so choose a longer one"
        )
    return found


def _given(file: Path | None) -> str | None:
    """Return the passphrase in a file or in the environment; None if neither has one."""
    if file is None:
        return _from_environment()
    try:
        return file.read_text().rstrip("\r\n")
    except OSError as error:
        raise PassphraseError(f"cannot read the passphrase in {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PassphraseError(f"the passphrase in {file} is not UTF-8 text") from None


def _from_environment() -> str | None:
    found = os.environ.get(VARIABLE)
    try:
        (found or "").encode()
    except UnicodeEncodeError:
        raise PassphraseError(f"the passphrase in {VARIABLE} is not UTF-8 text") from None
    return found


def _asked(prompt: str) -> str:
    if not sys.stdin.isatty():
        raise PassphraseError(
            f"there is no passphrase: name a file with --passphrase-file, or set {VARIABLE}"
        )
    return getpass.getpass(prompt)


def _where(file: Path | None) -> str:
    return f" in {file}" if file is not None else ""
