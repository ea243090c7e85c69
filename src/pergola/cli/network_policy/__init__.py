"""`pergola network-policy`: explains NetworkPolicies."""
