"""Infrastructure in AWS, managed or user-provided (spec 30), and a Garden's resources there.

actuator          the Infrastructure, on the SDK: `AwsInfrastructure`; `bastion/` has the Bastion
config, desired   the owner's configuration, and the desired state that follows from it
access            kinds that belong to no cluster: `dns/` (DNSRecord) and `backup/`
request           an Infrastructure and its Cluster into a `Wanted`
state, status     what a flow remembers, and what others read
observe, snapshot AWS's descriptions, read at once
preflight/        checks of the account before anything changes, each with the command that fixes it
resources/        AWS resources, one per file: observe, decide, create, change, delete
flows/            the graphs that reconcile and delete, and running them
byo/              what concerns user-provided networks
health/           conditions of user-provided resources
control_plane/    values for the control plane: cloud provider config, route controller
validation/       offline validation, for admission and `pergola aws validate`
admission/        webhooks for Shoots (`shoot_webhooks`), and what they depend on in the garden
show/             a cluster's network as text and as SVG
iam_policy        the least that the extension's own identity must be allowed
"""
