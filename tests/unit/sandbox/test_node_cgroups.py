from pathlib import Path

from pergola.sandbox.node import cgroups
from pergola.sandbox.node.cgroups import Hierarchy, hierarchies

FIRST = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime shared:9 - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
SECOND = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def test_version_1_hierarchies_are_preferred() -> None:
    assert hierarchies(FIRST) == [
        Hierarchy(Path("/sys/fs/cgroup/cpu,cpuacct"), "cpu,cpuacct"),
        Hierarchy(Path("/sys/fs/cgroup/systemd"), "name=systemd"),
    ]


def test_a_hierarchy_that_is_mounted_twice_counts_once() -> None:
    again = FIRST.replace("/sys/fs/cgroup", "/srv/chroot/sys/fs/cgroup")
    assert hierarchies(FIRST + again) == hierarchies(FIRST)


def test_version_2_is_used_if_it_is_the_only_one() -> None:
    assert hierarchies(SECOND) == [Hierarchy(Path("/sys/fs/cgroup"), "")]


def test_sandboxes_of_one_name_in_different_folders_have_different_groups() -> None:
    one, other = (cgroups.folders(Path(p, "sandbox-x")) for p in ("/tmp", "/run"))  # noqa: S108

    assert not set(one) & set(other)


def test_groups_are_removed_with_all_groups_below_them(tmp_path: Path) -> None:
    (tmp_path / "group" / "kubepods" / "pod").mkdir(parents=True)

    cgroups.remove([str(tmp_path / "group"), str(tmp_path / "never-made")])

    assert list(tmp_path.iterdir()) == []
