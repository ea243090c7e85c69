"""`python -m bench [admission | managed-resources | network-policies]`.

Without a word, ManagedResources are measured.
"""

import sys

from bench import admission, managed_resources, network_policies

BENCHES = {
    "admission": admission,
    "managed-resources": managed_resources,
    "network-policies": network_policies,
}

name = sys.argv.pop(1) if sys.argv[1:2] and sys.argv[1] in BENCHES else "managed-resources"
BENCHES[name].main()
