"""Observe the file system and its mount targets (spec 30 §10.2)."""

from pergola.cloud.errors import NotFound
from pergola.providers.aws.resources.observation import Observation
from pergola.providers.aws.status import file_system_of


async def observe_file_system(seen: Observation) -> None:
    """Read the file system by its id, or else by the token that it was created with.

    Raises:
        CloudError: AWS refused.
    """
    known = file_system_of(seen.desired, seen.state)
    if not (known or seen.desired.shoot_uid):
        return
    by = {"FileSystemId": known} if known else {"CreationToken": seen.desired.shoot_uid}
    try:
        systems = await seen.aws.pages("efs", "DescribeFileSystems", "FileSystems", **by)
    except NotFound:
        return
    for system in systems[:1]:
        seen.snapshot.file_system = system
        for target in await seen.aws.pages(
            "efs", "DescribeMountTargets", "MountTargets", FileSystemId=system["FileSystemId"]
        ):
            seen.snapshot.mount_targets[target["MountTargetId"]] = target
