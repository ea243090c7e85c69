"""Load balancers as AWS creates them (spec 30 §12)."""

from typing import Final

from pergola.sandbox.aws.answers import Call

SERVICE: Final = "elasticloadbalancing"
_CLASSIC: Final = "2012-06-01"
"""The version of the API of classic load balancers; that of the others is newer."""
_CREATION: Final = "CreateLoadBalancer"
_FIRST_PORT: Final = "Listeners.member.1.InstancePort"
_CHECK: Final = {
    "HealthyThreshold": "10",
    "Interval": "30",
    "Timeout": "5",
    "UnhealthyThreshold": "2",
}


class LoadBalancers:
    """New load balancers have the defaults that AWS documents; in moto they lack two of them.

    A classic one checks the port of its first listener by TCP, every 30 seconds with a timeout of
    5; two failures or ten successes in a row change its opinion. Another one faces the internet.
    Both are in descriptions, and clients rely on them.
    """

    def request(self, call: Call) -> Call:
        """Return the call with AWS's default for the scheme."""
        if call.operation != _CREATION or _is_classic(call):
            return call
        return call._replace(parameters={"Scheme": "internet-facing", **call.parameters})

    def afterwards(self, call: Call) -> list[Call]:
        """Return the call that configures the health check of a new load balancer."""
        if call.operation != _CREATION or not _is_classic(call):
            return []
        check = {**_CHECK, "Target": f"TCP:{call.parameters[_FIRST_PORT]}"}
        parameters = {
            "Action": "ConfigureHealthCheck",
            "Version": _CLASSIC,
            "LoadBalancerName": call.parameters["LoadBalancerName"],
            **{f"HealthCheck.{name}": value for name, value in check.items()},
        }
        return [Call(SERVICE, "ConfigureHealthCheck", parameters)]


def _is_classic(call: Call) -> bool:
    return call.parameters.get("Version") == _CLASSIC
