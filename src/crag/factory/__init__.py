"""Choose the parts from the environment, and report which were chosen and why.

Import from the modules: `crag index` needs `indexing` alone, and neither models nor graphs.
"""
