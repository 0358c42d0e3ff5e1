"""The application on Ray Serve: `serve run crag.serve.ray:app`, in as many replicas as needed.

They share the conversations in the PostgreSQL database that CRAG_SERVE_DATABASE names.
"""

from ray import serve

from crag.serve.app import create


@serve.deployment
@serve.ingress(create)
class Crag:
    """One replica, which reads the environment of its own machine."""


app = Crag.bind()  # type: ignore[attr-defined]  # what `deployment` makes of a class
