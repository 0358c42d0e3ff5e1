"""The command `crag`: a file for each command, which holds its options and what it does."""
