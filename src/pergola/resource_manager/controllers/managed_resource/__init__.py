"""The ManagedResource controller, one file for each thing that it does.

triggers   which events wake it
reconcile  the steps of one run
planning   Secrets into a plan; decode reads documents, plan keeps the result
references what the status lists, and which former object a manifest stands for
prune      deletes and releases
order, labels, merge, defaults, compare, apply
           what is written, in which order, and whether it needs to be
conditions what the status says afterwards
"""
