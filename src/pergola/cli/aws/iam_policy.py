"""`pergola aws iam-policy`: what the extension has to be allowed in an AWS account."""

from typing import Literal


def iam_policy(
    *,
    mode: Literal["managed", "byo", "check"] = "managed",
    efs: bool = False,
    ipv6: bool = False,
    security_group: bool = False,
    pod_routes: bool = False,
    bastion: bool = False,
    names: str = "shoot--*",
    partition: str = "aws",
) -> None:
    """Print an IAM policy with what the extension needs in an AWS account, and nothing else.

    Parameters
    ----------
    mode:
        managed: it creates networks; byo: it uses networks of users; check: it only reads.
    efs:
        Clusters have file systems.
    ipv6:
        Clusters have IPv6, alone or with IPv4.
    security_group:
        In networks of users, it creates the security group of the nodes.
    pod_routes:
        It removes routes to pods that clusters left in route tables of users: it runs with
        PERGOLA_AWS_REMOVE_DEAD_POD_ROUTES=true.
    bastion:
        There are Bastions.
    names:
        Technical ids of the clusters; with * for any text.
    partition:
        Of AWS, such as aws-cn.
    """
    import orjson

    from pergola.providers.aws.iam_policy import Feature, Mode
    from pergola.providers.aws.iam_policy import iam_policy as policy

    wanted = {
        Feature.EFS: efs,
        Feature.IPV6: ipv6,
        Feature.SECURITY_GROUP: security_group,
        Feature.POD_ROUTES: pod_routes,
        Feature.BASTION: bastion,
    }
    features = [feature for feature, is_wanted in wanted.items() if is_wanted]
    document = policy(Mode(mode), features, names=names, partition=partition)
    print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
