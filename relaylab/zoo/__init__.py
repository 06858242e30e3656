"""The networks of relay.testing, with the same parameter names, shapes and structure.

Every module has `get_net(...)` (a Function) and `get_workload(...)` (a typed module and its
parameters). Facts, not code, are taken from the reference: `create_workload` draws the same
numbers in the same order, so that a seeded network gives the numbers that users have seen.
"""
