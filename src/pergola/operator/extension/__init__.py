"""Extensions of a garden: installed where they are required, and watched (spec 21 §13).

`reconcile` has the steps of an Extension. What it deploys is in `runtime` (the runtime cluster),
`admission` (both clusters) and `registration` (the virtual cluster). `required_runtime` and
`required_virtual` say where it is required, `care` whether it is healthy; `units` has the
controllers and their triggers.
"""
