"""`pergola aws iam-policy`: the permissions that the extension needs in an AWS account."""

from typing import Literal

from pergola.cli.text import say


def iam_policy(
    *,
    mode: Literal[
        "managed",
        "byo",
        "check",
        "control-plane",
        "load-balancer-controller",
        "dns",
        "backup",
    ] = "managed",
    efs: bool = False,
    ipv6: bool = False,
    security_group: bool = False,
    pod_routes: bool = False,
    route_controller: bool = False,
    bastion: bool = False,
    permissions_boundary: str = "",
    names: str = "",
    partition: str = "aws",
) -> None:
    """Print an IAM policy with exactly the permissions that are needed in an AWS account.

    The credentials of a Shoot need two policies, or three: managed or byo for the extension,
    control-plane for the controllers of its control plane, and load-balancer-controller if its
    configuration enables that controller. They are separate because AWS limits the length of one.

    Parameters
    ----------
    mode:
        managed: create networks; byo: use user-provided networks; check: only read; control-plane:
        run nodes, volumes, and load balancers of Services; load-balancer-controller: run load
        balancers of Ingresses; dns: keep DNS records in Route 53; backup: keep backups in S3.
    efs:
        For clusters with file systems.
    ipv6:
        For clusters with IPv6, alone or with IPv4.
    security_group:
        Create the nodes' security group in user-provided networks.
    pod_routes:
        Remove dead pod routes of deleted clusters from user-provided route tables, as with
        PERGOLA_AWS_REMOVE_DEAD_POD_ROUTES=true.
    route_controller:
        For clusters without an overlay: the control plane writes pod routes into route tables, and
        the extension reads the quota of routes.
    bastion:
        For Bastions.
    permissions_boundary:
        The ARN of the policy that must bound the roles of nodes, as with
        PERGOLA_AWS_NODES_PERMISSIONS_BOUNDARY. Without it, the permissions are as good as those of
        an administrator of the account: they can give any permission to a role, and take it.
    names:
        Technical ids of the clusters, by default shoot--*; for dns, ids of the hosted zones, and
        for backup, names of the buckets, by default all. * matches any text.
    partition:
        The AWS partition, such as aws-cn.
    """
    import orjson

    from pergola.providers.aws.garden_iam_policy import Purpose, garden_iam_policy
    from pergola.providers.aws.iam_policy import Feature, Mode
    from pergola.providers.aws.iam_policy import iam_policy as policy

    chosen = {
        Feature.EFS: efs,
        Feature.IPV6: ipv6,
        Feature.SECURITY_GROUP: security_group,
        Feature.POD_ROUTES: pod_routes,
        Feature.ROUTE_CONTROLLER: route_controller,
        Feature.BASTION: bastion,
    }
    features = [feature for feature, is_chosen in chosen.items() if is_chosen]
    if mode in frozenset(Purpose):
        document = garden_iam_policy(Purpose(mode), names=names or "*", partition=partition)
    else:
        named = names or "shoot--*"
        document = policy(
            Mode(mode), features, names=named, partition=partition, boundary=permissions_boundary
        )
    say(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
