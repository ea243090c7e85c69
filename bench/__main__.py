"""`python -m bench [admission | aws-flow | garden | managed-resources | network-policies]`.

Without a word, ManagedResources are measured.
"""

import sys

from bench import admission, aws_flow, garden, managed_resources, network_policies

BENCHES = {
    "admission": admission,
    "aws-flow": aws_flow,
    "garden": garden,
    "managed-resources": managed_resources,
    "network-policies": network_policies,
}

name = sys.argv.pop(1) if sys.argv[1:2] and sys.argv[1] in BENCHES else "managed-resources"
BENCHES[name].main()
