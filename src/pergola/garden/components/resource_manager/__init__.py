"""The two resource managers of a Garden (spec 20 §13, §14).

`runtime` maintains the objects of the runtime cluster, `virtual` those of the virtual one; both run
in the runtime cluster. `configuration` has their configuration files, `workload` their Deployments.
"""
