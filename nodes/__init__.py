"""The nodes of the state machine, one per file.

A node holds the parts it needs and returns only the state keys it writes.
"""
