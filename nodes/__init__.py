"""The verbs of the state machine, one node in one file.

A node holds the parts it needs and returns only the state keys it writes.
"""
