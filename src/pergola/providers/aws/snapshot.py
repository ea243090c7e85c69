"""AWS's descriptions of a cluster's infrastructure, shared by checks, plans and flows (§13).

Only descriptions; nothing here makes decisions.
"""

from dataclasses import dataclass, field

from pergola.api.objects import JsonObject


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """AWS's descriptions, by the id of the resource; parts that were not requested are empty.

    Attributes:
        vpc: the cluster's VPC; None while there is none.
        vpc_attributes: `enableDnsSupport` and `enableDnsHostnames` of the VPC.
        dhcp_options: the set of the VPC, and those with the cluster's tags.
        subnets: all of the VPC, and those that the config names.
        route_tables, nat_gateways, security_groups, endpoints: all of the VPC.
        internet_gateways, egress_only_gateways: those attached to the VPC or with its tags.
        addresses: elastic IPs with the cluster's tags, and those that the config names.
        foreign_groups: security groups that the config names and that are in another VPC.
        key_pair: None if there is none.
        role, instance_profile: of IAM, None if there is none.
        role_policy: the inline policy's document; None if there is none.
        file_system, mount_targets: of EFS.
        route_quota: the routes that the account may have in a table; None if unknown.
    """

    vpc: JsonObject | None = None
    vpc_attributes: dict[str, bool] = field(default_factory=dict)
    dhcp_options: dict[str, JsonObject] = field(default_factory=dict)
    internet_gateways: dict[str, JsonObject] = field(default_factory=dict)
    egress_only_gateways: dict[str, JsonObject] = field(default_factory=dict)
    subnets: dict[str, JsonObject] = field(default_factory=dict)
    route_tables: dict[str, JsonObject] = field(default_factory=dict)
    nat_gateways: dict[str, JsonObject] = field(default_factory=dict)
    addresses: dict[str, JsonObject] = field(default_factory=dict)
    security_groups: dict[str, JsonObject] = field(default_factory=dict)
    foreign_groups: dict[str, JsonObject] = field(default_factory=dict)
    endpoints: dict[str, JsonObject] = field(default_factory=dict)
    key_pair: JsonObject | None = None
    role: JsonObject | None = None
    instance_profile: JsonObject | None = None
    role_policy: JsonObject | None = None
    file_system: JsonObject | None = None
    mount_targets: dict[str, JsonObject] = field(default_factory=dict)
    route_quota: int | None = None
