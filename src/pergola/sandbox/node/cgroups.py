"""The control groups of one node: made before it starts, removed when it has ended.

Cgroups are the only thing that a node shares with its machine and that does not vanish with its
namespaces. Each node has one folder in every hierarchy; a cgroup namespace makes it look like the
root from inside, so that two nodes can use the same names.
"""

import contextlib
import hashlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from pergola.sandbox.node.kernel import mount

_INSIDE: Final = Path("/sys/fs/cgroup")
_CPUSET: Final = ("cpuset.cpus", "cpuset.mems")  # empty in a new group, which then takes no process
_ATTEMPTS: Final = 100
_MOMENT: Final = 0.02


class Hierarchy(NamedTuple):
    """A mounted cgroup file system.

    Attributes:
        mount_point: where.
        options: the controllers (or `name=systemd`) of version 1; empty for version 2.
    """

    mount_point: Path
    options: str

    @property
    def controllers(self) -> frozenset[str]:
        """The names in its options."""
        return frozenset(self.options.split(","))


def hierarchies(mountinfo: str) -> list[Hierarchy]:
    """The hierarchies to use, from the content of `/proc/self/mountinfo`.

    Those of version 1, if there are any: then version 2 has no controllers.
    """
    first, second = [], []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        mount_point = Path(fields.split()[4])
        if kind == "cgroup":
            names = [
                o for o in options.split(",") if o not in ("rw", "ro", "xattr", "clone_children")
            ]
            first.append(Hierarchy(mount_point, ",".join(names)))
        elif kind == "cgroup2":
            second.append(Hierarchy(mount_point, ""))
    return first or second[:1]


def folders(directory: Path) -> list[str]:
    """Where the groups of the sandbox in this directory are to be.

    With version 1 they are below the caller's own groups, whose limits then hold for the node, too.
    With version 2 they are at the top, because a group that has processes cannot share out its
    controllers.
    """
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:8]
    own = _own_groups(Path("/proc/self/cgroup").read_text())
    found = hierarchies(Path("/proc/self/mountinfo").read_text())
    return [
        str(h.mount_point / own.get(h.controllers, "") / f"pergola-{directory.name}-{digest}")
        for h in found
    ]


def enter(groups: Iterable[str]) -> None:
    """Makes the groups, and moves the calling process into them."""
    for group in map(Path, groups):
        group.mkdir(exist_ok=True)
        for name in _CPUSET:
            if (group / name).exists() and not (group / name).read_text().strip():
                (group / name).write_text((group.parent / name).read_text())
        (group / "cgroup.procs").write_text("0")


def mount_inside() -> None:
    """Mounts the hierarchies anew, in a cgroup namespace: the groups appear as their roots."""
    found = hierarchies(Path("/proc/1/mountinfo").read_text())
    if not found[0].options:
        mount("cgroup2", _INSIDE, "cgroup2")
        _share_out(_INSIDE)
        return
    mount("tmpfs", _INSIDE, "tmpfs", options="mode=755")
    for hierarchy in found:
        folder = _INSIDE / hierarchy.mount_point.name
        folder.mkdir()
        mount("cgroup", folder, "cgroup", options=hierarchy.options)
        for alias in hierarchy.controllers - {folder.name}:
            if "=" not in alias:
                (_INSIDE / alias).symlink_to(folder.name)


def remove(groups: Iterable[str]) -> None:
    """Removes the groups with all that is below them; their processes have to be gone."""
    for group in map(Path, groups):
        for _ in range(_ATTEMPTS):
            # A process that was just killed leaves its group a moment later.
            if _remove_tree(group):
                break
            time.sleep(_MOMENT)


def _remove_tree(group: Path) -> bool:
    if group.is_dir():
        for child in group.iterdir():
            if child.is_dir():
                _remove_tree(child)
        with contextlib.suppress(OSError):
            group.rmdir()
    return not group.exists()


def _own_groups(content: str) -> dict[frozenset[str], str]:
    """The path of the caller's group by controllers; not of version 2."""
    lines = [line.split(":", 2) for line in content.splitlines()]
    return {frozenset(names.split(",")): path.lstrip("/") for _, names, path in lines if names}


def _share_out(root: Path) -> None:
    """Gives the controllers to the groups below: for that the root must have no processes."""
    leaf = root / "supervisor"
    leaf.mkdir(exist_ok=True)
    for process in (root / "cgroup.procs").read_text().split():
        (leaf / "cgroup.procs").write_text(process)
    names = (root / "cgroup.controllers").read_text().split()
    (root / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in names))
