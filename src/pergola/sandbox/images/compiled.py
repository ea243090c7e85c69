"""Compiled modules of Python: a container with a read-only root file system cannot compile them."""

import py_compile
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pergola.sandbox.images.layers import Entry


def compiled(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries, and their modules as this interpreter compiles them.

    The compiled modules do not depend on when or where they were compiled.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "module.py"), Path(folder, "module.pyc")
        for entry in entries:
            yield entry
            if entry.content is None or not entry.path.endswith(".py"):
                continue
            if isinstance(entry.content, bytes):
                source.write_bytes(entry.content)
            file = entry.content if isinstance(entry.content, Path) else source
            try:
                py_compile.compile(
                    str(file),
                    str(target),
                    dfile=f"/{entry.path}",
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
            except py_compile.PyCompileError:
                continue  # a template, or a module for another version of Python
            path = Path(entry.path)
            name = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            yield Entry(str(path.parent / "__pycache__" / name), target.read_bytes())
