"""Why machines of a Shoot are as they are: from a Worker down to what the cloud said.

worker, deployment, machine   an `explain` for each kind
observed                      reads of a namespace, and where a machine belongs
controller                    whether machine-controller-manager runs
words                         what the cloud said, its class, and what to do
"""
