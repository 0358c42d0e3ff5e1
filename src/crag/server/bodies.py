"""What clients send; a wrong body is refused with the field and what is wrong with it."""

from typing import Any, Literal, TypeVar
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.requests import Request

from crag.server.refusals import RefusedRequestError
from crag.server.runs import Strategy
from crag.server.streaming import MODES

_Model = TypeVar("_Model", bound=BaseModel)
Names = list[str] | Literal["*"] | None


class Body(BaseModel):
    """What is unknown is ignored, as newer clients send more."""

    model_config = ConfigDict(extra="ignore")


class AssistantSearch(Body):
    """`POST /assistants/search`."""

    graph_id: str | None = None
    metadata: dict[str, Any] | None = None
    limit: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0)


class ThreadNew(Body):
    """`POST /threads`."""

    thread_id: UUID | None = None
    metadata: dict[str, Any] | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None


class ThreadChange(Body):
    """`PATCH /threads/{thread_id}`."""

    metadata: dict[str, Any] = {}


class ThreadSearch(Body):
    """`POST /threads/search` and `/threads/count`."""

    metadata: dict[str, Any] | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    ids: list[UUID] | None = None
    limit: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0)
    sort_by: Literal["thread_id", "status", "created_at", "updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None


class Checkpoint(Body):
    """The address of a checkpoint within its thread."""

    checkpoint_id: str | None = None
    checkpoint_ns: str = ""
    checkpoint_map: dict[str, Any] | None = None


class StateAt(Body):
    """`POST /threads/{thread_id}/state/checkpoint`."""

    checkpoint: Checkpoint
    subgraphs: bool = False


class StateChange(Body):
    """`POST /threads/{thread_id}/state`."""

    values: Any = None
    as_node: str | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_id: str | None = None


class HistoryQuery(Body):
    """`POST /threads/{thread_id}/history`."""

    limit: int = Field(10, ge=1, le=1000)
    before: Checkpoint | str | None = None
    metadata: dict[str, Any] | None = None
    checkpoint: Checkpoint | None = None


class RunNew(Body):
    """`POST …/runs`, `…/runs/stream` and `…/runs/wait`."""

    assistant_id: str
    input: Any = None
    command: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_id: str | None = None
    stream_mode: list[str] = ["values"]
    stream_subgraphs: bool = False
    interrupt_before: Names = None
    interrupt_after: Names = None
    multitask_strategy: Strategy = "enqueue"
    on_disconnect: Literal["cancel", "continue"] = "continue"
    on_completion: Literal["delete", "keep"] = "delete"
    if_not_exists: Literal["create", "reject"] = "reject"
    durability: Literal["sync", "async", "exit"] = "async"

    @field_validator("stream_mode", mode="before")
    @classmethod
    def _modes(cls, value: object) -> object:
        modes = [value] if isinstance(value, str) else value or ["values"]
        if isinstance(modes, list) and (
            unknown := [str(mode) for mode in modes if mode not in MODES]
        ):
            message = f"{', '.join(unknown)}: allowed are {', '.join(sorted(MODES))}"
            raise ValueError(message)
        return modes

    @field_validator("on_disconnect", "on_completion", "if_not_exists", "durability",
                     "multitask_strategy", mode="before")  # fmt: skip
    @classmethod
    def _given(cls, value: object, info: Any) -> object:
        return cls.model_fields[info.field_name].default if value is None else value


async def body(request: Request, model: type[_Model]) -> _Model:
    """Read the body of a request; none is an empty object.

    Raises:
        RefusedRequestError: it is no JSON, or a field is wrong.
    """
    sent = await request.body()
    try:
        found = orjson.loads(sent) if sent else {}
    except orjson.JSONDecodeError as error:
        raise RefusedRequestError(422, f"Invalid JSON in request body: {error}") from None
    if found is None:
        found = {}
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise RefusedRequestError(422, _told(error)) from None


def _told(error: ValidationError) -> str:
    """Say what is wrong with which field, without the rest of what was sent."""
    return "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'the body'}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False)[:5]
    )
