"""Facts about the cluster that handlers read, in addition to the reviewed object.

`lookups` is their interface; `environment`, `high_availability` and `taints` have the parts.
"""
