"""DNS records in Route 53, for Gardens, Seeds and Shoots: the extension kind `DNSRecord`.

actuator        the DNSRecord, on the SDK: `AwsDnsRecord`
record          the record sets that a DNSRecord desires; pure
state           the record sets that were created for it, as `status.state` has them
load_balancers  the zones of AWS's load balancers, for alias records
"""

from pergola.providers.aws.dns.actuator import AwsDnsRecord

__all__ = ["AwsDnsRecord"]
