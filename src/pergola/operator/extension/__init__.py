"""Extensions of a garden: installed where they are required, and watched (spec 21 §13).

`reconcile` has the steps of an Extension. It deploys `runtime` (in the runtime cluster),
`admission` (in both clusters) and `registration` (in the virtual cluster). `required_runtime` and
`required_virtual` determine where it is required, and `care` whether it is healthy; `units`
contains the controllers and their triggers.
"""
