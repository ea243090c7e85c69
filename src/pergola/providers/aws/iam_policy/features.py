"""The purposes for which policies are printed."""

from enum import StrEnum


class Mode(StrEnum):
    """The activity in an account: the extension's, or that of controllers beside it.

    Each has a policy of its own: AWS limits the length of one, and an identity can have several.
    """

    MANAGED = "managed"
    """It creates networks, or parts of them."""
    BYO = "byo"
    """It uses networks of users, and creates only the identity of nodes."""
    CHECK = "check"
    """It only reads: `pergola aws check` and `plan`."""
    CONTROL_PLANE = "control-plane"
    """Cloud controller manager, machine-controller-manager, controllers of volumes and of pods'
    networks."""
    LOAD_BALANCER_CONTROLLER = "load-balancer-controller"
    """AWS's controller of load balancers for Ingresses, which Shoots may enable."""


class Feature(StrEnum):
    """Optional features of clusters that need extra permissions."""

    EFS = "efs"
    """File systems."""
    IPV6 = "ipv6"
    """IPv6, alone or with IPv4."""
    SECURITY_GROUP = "security-group"
    """A security group that is created in a network of a user; in managed networks it always is."""
    POD_ROUTES = "pod-routes"
    """The removal of dead pod routes from a user's tables, which operators may enable."""
    PERMISSIONS_BOUNDARY = "permissions-boundary"
    """A policy that bounds the roles of nodes."""
    BASTION = "bastion"
    """Hosts through which people reach nodes."""
    ROUTE_CONTROLLER = "route-controller"
    """Shoots without an overlay: a controller writes routes to pods, up to a quota."""
