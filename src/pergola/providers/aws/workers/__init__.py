"""Machines in AWS (spec 31 §3, §4): pure functions from a Worker to what its machines are made of.

images         the machine image of a pool, and the images in the status
hash_inputs    what replaces the machines of a pool when it changes
provider_spec  what machine-controller-manager's driver for AWS reads
block_devices  volumes
interfaces     network interfaces
node_template  what the cluster autoscaler reads
machines       all of them together
pool_changes   which machines a changed Worker replaces
"""
