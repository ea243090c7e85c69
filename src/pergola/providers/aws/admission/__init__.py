"""Admission in the garden, the component `admission-aws` (spec 31 §8).

webhooks       the registrations, as the original has them
validators     what is checked of each kind; the checks themselves are in `validation/`
image_flavors  the capabilities of images, and the images of NamespacedCloudProfiles
"""
