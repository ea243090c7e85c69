"""The subnets of a zone (spec 30 §3.5).

desired      which subnets a zone should have
identity     which existing subnet is which, and the `zN` in names
ensure       the step that creates them and keeps their attributes
ipv6_ranges  which /64 of the VPC's block a new subnet gets
deletion     the steps that delete them
surplus      the step that deletes what no zone of the config needs any more
"""
