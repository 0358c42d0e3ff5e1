"""What the production server may use: its database, its share of it, and its limits."""

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ServerSettings(BaseSettings):
    """Read from variables that begin with CRAG_SERVE_."""

    model_config = SettingsConfigDict(
        env_prefix="CRAG_SERVE_", extra="ignore", env_ignore_empty=True, frozen=True
    )

    database: SecretStr
    """CRAG_SERVE_DATABASE: URL of PostgreSQL, as libpq takes it."""
    connections: Annotated[int, Field(ge=2, le=1000)] = 10
    """CRAG_SERVE_CONNECTIONS: most connections of one process, besides the one that listens."""
    statement_seconds: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """CRAG_SERVE_STATEMENT_SECONDS: longest time for one statement."""
    jobs: Annotated[int, Field(ge=1, le=1000)] = 16
    """CRAG_SERVE_JOBS: most runs at once in one process."""
    queue: Annotated[int, Field(ge=0)] = 1000
    """CRAG_SERVE_QUEUE: most runs that wait, in all processes; others are refused with 503."""
    queue_seconds: Annotated[float, Field(gt=0)] = 60.0
    """CRAG_SERVE_QUEUE_SECONDS: longest time that a run waits once its thread is free; then it ends
    with an error."""
    per_user: Annotated[int, Field(ge=1)] = 50
    """CRAG_SERVE_PER_USER: most unfinished runs of one user; others are refused with 429."""
    run_seconds: Annotated[float, Field(gt=0)] = 600.0
    """CRAG_SERVE_RUN_SECONDS: longest time for one run; then it ends with an error."""
    attempts: Annotated[int, Field(ge=1)] = 5
    """CRAG_SERVE_ATTEMPTS: how often a run is begun whose process was killed."""
    lease_seconds: Annotated[float, Field(ge=1)] = 8.0
    """CRAG_SERVE_LEASE_SECONDS: after how long without a sign of life a run is taken up."""
    keep_seconds: Annotated[float, Field(gt=0)] = 600.0
    """CRAG_SERVE_KEEP_SECONDS: how long the stream of a finished run can be read again."""
