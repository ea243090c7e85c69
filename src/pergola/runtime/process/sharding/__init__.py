"""Replicas that share the objects of a ring, as kubernetes-controller-sharding assigns them."""
