"""What handlers know about the cluster besides the object that they review.

`lookups` is their interface; `environment`, `high_availability` and `taints` have the parts.
"""
