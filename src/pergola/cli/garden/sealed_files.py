"""Exports of Gardens as encrypted files."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pergola.cli.manifest_files import ManifestFileError, content

if TYPE_CHECKING:
    from pergola.operator.transfer import Export


def write_sealed(path: Path, export: "Export", passphrase: str) -> None:
    """Write an export for the current user only, replacing an older export atomically.

    Raises:
        ManifestFileError: The file exists and is not an export, or it cannot be written.
    """
    from pergola.operator.transfer import encode, is_sealed, seal

    if path.exists() and not is_sealed(content(str(path))):
        raise ManifestFileError(f"{path} exists and is not an export: choose another file")
    sealed = seal(encode(export), passphrase)
    try:
        descriptor, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(sealed)
                file.flush()
                os.fsync(file.fileno())
            Path(fresh).replace(path)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ManifestFileError(f"cannot write {path}: {error.strerror}") from None


def read_sealed(path: Path, passphrase: str) -> "Export":
    """Return the export in a file.

    Raises:
        ManifestFileError: The file cannot be read, is not an export, or the passphrase is wrong.
    """
    from pergola.operator.transfer import TransferError, decode, unseal

    sealed = content(str(path))
    try:
        return decode(unseal(sealed, passphrase))
    except TransferError as error:
        raise ManifestFileError(f"cannot import {path}: {error}") from None
