"""The evaluator as a service of its own, for graphs of other processes and machines.

`app` is the application that `crag serve-evaluator` runs, `replicas` runs it on Ray Serve.
"""
