"""Namespaces and roles of the virtual cluster that people and gardenlets need (spec 20 §16.1).

component  the component itself: namespaces, and the roles of all users
operators  roles of people who run the landscape
projects   roles that Gardener gives to the members of a project
roles      building roles
"""
