"""Infrastructure in AWS: managed, or user-provided (spec 30).

actuator          the Infrastructure, on the SDK: `AwsInfrastructure`; `bastion/` has the Bastion
config, wanted    what a Shoot's owner says, and what follows from it
request           an Infrastructure and its Cluster into a `Wanted`
state, status     what is remembered, and what is told
observe, snapshot what AWS says, read in one sweep
live/             checks of the account before anything is created, each with what repairs it
step, steps/      the steps that create and change; `steps/byo/` for user-provided networks
deletion/         the steps that remove
reconcile         all steps as graphs that run, or are only drawn
security_rules, load_balancers, routing, control_plane
                  decisions without AWS: rules, subnets of load balancers, route tables, the cloud
                  controller's configuration
validation/, shoot_webhooks
                  what may be said, for admission and for `pergola aws validate`
iam_policy        the least that an identity has to be allowed
"""
