"""AWS resources, one per file, with the steps that create, change and delete each.

A step completes the snapshot, decides, and carries its decision out; a plan only decides.

step         steps, their shared inputs, and how they run
decision     what a step does: a note for plans, and calls
kinds, ours  what EC2 has, and what is created for the cluster
adoption     find what was created before, by the state or by its tags
removal      delete what is ours, and retry what is in use
waiting      wait until AWS has finished
tags         compare tags, and write what differs
step_names   names of the steps that others come after

Each resource has `steps` (or `step`), which create it and keep it, and `delete_steps` (or
`delete_step`). A resource too large for one file is a folder.
"""
