"""The cgroups of one node, created before it starts and removed after it has ended.

Cgroups are the only resource that a node shares with its machine and that outlives its namespaces.
Each node has one folder in every hierarchy, which a cgroup namespace presents as the root, so that
two nodes can use the same names.
"""

import contextlib
import hashlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from pergola.sandbox.node.kernel import mount

_INSIDE: Final = Path("/sys/fs/cgroup")
_CPUSET: Final = (
    "cpuset.cpus",
    "cpuset.mems",
)  # empty in a new group, which then rejects processes
_ATTEMPTS: Final = 100
_MOMENT: Final = 0.02


class Hierarchy(NamedTuple):
    """A mounted cgroup file system.

    Attributes:
        mount_point: the folder where it is mounted.
        options: the controllers (or `name=systemd`) of version 1; empty for version 2.
    """

    mount_point: Path
    options: str

    @property
    def controllers(self) -> frozenset[str]:
        """The controllers named in its options."""
        return frozenset(self.options.split(","))


def hierarchies(mountinfo: str) -> list[Hierarchy]:
    """Return the hierarchies to use, from the content of `/proc/self/mountinfo`.

    Return those of version 1 if any exist, because version 2 has no controllers then. One that is
    mounted several times, such as for a chroot, counts where it was mounted first.
    """
    first: dict[str, Hierarchy] = {}
    second = []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        mount_point = Path(fields.split()[4])
        if kind == "cgroup":
            names = [
                o for o in options.split(",") if o not in ("rw", "ro", "xattr", "clone_children")
            ]
            found = Hierarchy(mount_point, ",".join(names))
            first.setdefault(found.options, found)
        elif kind == "cgroup2":
            second.append(Hierarchy(mount_point, ""))
    return [*first.values()] or second[:1]


def folders(directory: Path) -> list[str]:
    """Return the cgroup folders for the sandbox in this directory.

    With version 1 they are below the caller's own groups, whose limits then apply to the node. With
    version 2 they are at the top, because a group with processes cannot delegate its controllers.
    """
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:8]
    own = _own_groups(Path("/proc/self/cgroup").read_text())
    found = hierarchies(Path("/proc/self/mountinfo").read_text())
    return [
        str(h.mount_point / own.get(h.controllers, "") / f"pergola-{directory.name}-{digest}")
        for h in found
    ]


def enter(groups: Iterable[str]) -> None:
    """Create the groups, and move the calling process into them."""
    for group in map(Path, groups):
        group.mkdir(exist_ok=True)
        for name in _CPUSET:
            if (group / name).exists() and not (group / name).read_text().strip():
                (group / name).write_text((group.parent / name).read_text())
        (group / "cgroup.procs").write_text("0")


def mount_inside() -> None:
    """Mount the hierarchies again inside a cgroup namespace, where the groups appear as roots."""
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
    """Remove the groups and all groups below them, whose processes must have ended."""
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
    """Return the paths of the caller's version 1 groups by controllers."""
    lines = [line.split(":", 2) for line in content.splitlines()]
    return {frozenset(names.split(",")): path.lstrip("/") for _, names, path in lines if names}


def _share_out(root: Path) -> None:
    """Delegate the controllers to child groups, after moving all processes out of the root."""
    leaf = root / "supervisor"
    leaf.mkdir(exist_ok=True)
    for process in (root / "cgroup.procs").read_text().split():
        (leaf / "cgroup.procs").write_text(process)
    names = (root / "cgroup.controllers").read_text().split()
    (root / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in names))
