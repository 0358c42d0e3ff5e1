"""The evaluator service on Ray Serve.

`serve run crag.evaluator_service.replicas:application replicas=4` starts four replicas.
Each replica is a process with the evaluator that CRAG_EVALUATOR names there, and runs the same
application as `crag serve-evaluator`; Ray's proxy gives each request to a replica. Batches are
those of the queue in front of each model: unlike `serve.batch`, it waits for no timer. Set
CRAG_EVALUATOR_TOKEN for every replica where the proxy listens on more than loopback.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field
from starlette.applications import Starlette

from crag.evaluator_service.app import THREADS, served
from crag.extras import require
from crag.runtime.environment import Environment


class Replicas(BaseModel):
    """What `serve run` takes as ``NAME=VALUE``."""

    replicas: Annotated[int, Field(ge=1)] = 1
    at_once: Annotated[int, Field(ge=1)] = THREADS
    """Requests that a replica judges at the same time."""
    cpus: Annotated[float, Field(gt=0)] = 1.0
    """Reserved for each replica."""
    gpus: Annotated[float, Field(ge=0)] = 0.0


def application(wanted: Replicas) -> Any:
    """Return the application for Ray Serve.

    Raises:
        MissingPackageError: Ray Serve is not installed.
    """
    require("ray-serve", "the evaluator on Ray Serve", "ray", "fastapi")
    from ray import serve

    replica: Any = serve.ingress(_replica)()
    deployment: Any = serve.deployment(
        replica,
        name="evaluator",
        num_replicas=wanted.replicas,
        max_ongoing_requests=wanted.at_once,
        ray_actor_options={"num_cpus": wanted.cpus, "num_gpus": wanted.gpus},
    )
    return deployment.bind()


def _replica() -> Starlette:
    return served(Environment())
