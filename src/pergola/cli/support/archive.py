"""A compressed archive that only its owner can read."""

import io
import os
import tarfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

_MODE: Final = 0o600


def write(path: Path, texts: Mapping[str, str], time: datetime) -> None:
    """Write texts as files of one folder, which has the name of the archive.

    Raises:
        OSError: The file exists, or cannot be written.
    """
    folder = path.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in texts.items():
            content = text.encode()
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode, member.mtime = len(content), _MODE, int(time.timestamp())
            archive.addfile(member, io.BytesIO(content))
