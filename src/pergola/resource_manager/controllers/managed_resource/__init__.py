"""The ManagedResource controller, one file per responsibility.

triggers   which events trigger it
reconcile  the steps of one run
planning   Secrets into a plan; decode reads documents, plan keeps the result
references what the status lists, and which recorded object a manifest describes
prune      deletes and releases
order, apply
           what is written, and in which order
labels, merge, keep, services, scaled
           what an object should look like, and what is kept of the live one
compare, shapes, defaults*
           whether it differs from what it should look like
conditions what the status says afterwards
"""
