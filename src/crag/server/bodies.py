"""What clients send; a wrong body or query is refused with the field and what is wrong with it.

Whatever PostgreSQL could not store is refused here: it would refuse it without naming a field.
What is unknown is ignored, as newer clients send more, and what is null is not set.
"""

from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from langgraph_sdk import schema
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, ValidationError
from starlette.requests import Request
from typing_extensions import TypedDict

from crag.plain import problems
from crag.server.replies import RefusedRequestError
from crag.server.streaming import Mode

_DEEPEST = 200
"""Most lists and objects within each other, of which writers of JSON take 254."""


def _checked_graph(sent: object) -> object:
    if isinstance(sent, dict) and not isinstance(sent.get("graph_id"), str | None):
        raise ValueError("graph_id: must be text")  # noqa: TRY004 - what pydantic reports
    return sent


def _unserved(instead: str) -> BeforeValidator:
    """Refuse what would be missed if it were ignored; `instead` says what to do."""

    def check(value: object) -> None:
        if value:  # Some clients send an empty object, a zero or null for what is not set.
            raise ValueError("this server does not read it: " + instead)

    return BeforeValidator(check)


def _set(sent: object) -> object:
    """Leave out what is null."""
    if not isinstance(sent, dict):
        return sent
    return {name: value for name, value in sent.items() if value is not None}


def _modes(sent: object) -> object:
    return [sent] if isinstance(sent, str) else sent or ["values"]


def _at(sent: object) -> object:
    return {"checkpoint_id": sent} if isinstance(sent, str) else _set(sent)


class Checkpoint(TypedDict, total=False):
    """The address of a checkpoint within its thread."""

    checkpoint_id: str
    checkpoint_ns: str
    checkpoint_map: dict[str, Any]


class Config(schema.Config, total=False):
    """What LangChain calls the configuration of a run."""

    metadata: dict[str, Any]


Names = list[str] | Literal["*"] | None
Metadata = Annotated[dict[str, Any], BeforeValidator(_checked_graph)]
At = Annotated[Checkpoint, BeforeValidator(_at)]
"""A checkpoint, whose id alone is enough."""
Start = Annotated[At, Field(validation_alias=AliasChoices("checkpoint", "checkpoint_id"))]
"""Where something begins, by either of its names; the last checkpoint, if that is empty."""


class Described(BaseModel):
    """What has metadata; `PATCH /threads/{thread_id}` has nothing else."""

    metadata: Metadata = {}


class Search(Described):
    """What all searches take."""

    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0, lt=2**63)


class AssistantSearch(Search):
    """`POST /assistants/search` and `/assistants/count`."""

    graph_id: str | None = None
    name: str = ""


class ThreadSearch(Search):
    """`POST /threads/search` and `/threads/count`."""

    status: schema.ThreadStatus | None = None
    ids: list[UUID] | None = None
    sort_by: Literal["thread_id", "status", "created_at", "updated_at"] = "created_at"
    sort_order: schema.SortOrder = "desc"
    values: Annotated[object, _unserved("search by metadata")] = None


class Query(Search):
    """What is asked of a thread, a run or an assistant, mostly in the address."""

    checkpoint: At = {}
    before: At = {}
    subgraphs: bool = False
    status: schema.RunStatus | None = None
    xray: int | bool = Field(default=False, union_mode="left_to_right")
    action: schema.CancelAction = "interrupt"
    wait: bool = False
    cancel_on_disconnect: bool = False


class ThreadNew(Described):
    """`POST /threads`."""

    thread_id: UUID | None = None
    if_exists: schema.OnConflictBehavior = "raise"
    supersteps: Annotated[object, _unserved("write the state afterwards")] = None


class StateChange(BaseModel):
    """`POST /threads/{thread_id}/state`."""

    checkpoint: Start = {}
    values: Any = None
    as_node: str | None = None


class RunNew(Described):
    """`POST …/runs`, `…/runs/stream` and `…/runs/wait`."""

    assistant_id: str
    checkpoint: Start = {}
    input: Any = None
    command: Annotated[schema.Command, BeforeValidator(_set)] = {}
    config: Annotated[Config, BeforeValidator(_set)] = {}
    context: dict[str, Any] | None = None
    stream_mode: Annotated[list[Mode], BeforeValidator(_modes)] = ["values"]
    stream_subgraphs: bool = False
    interrupt_before: Names = None
    interrupt_after: Names = None
    multitask_strategy: schema.MultitaskStrategy = "enqueue"
    on_disconnect: schema.DisconnectMode = "continue"
    on_completion: schema.OnCompletionBehavior = "delete"
    if_not_exists: schema.IfNotExists = "reject"
    durability: schema.Durability = "async"
    after_seconds: Annotated[object, _unserved("start the run at that time")] = None


async def read(request: Request, model: type[BaseModel]) -> BaseModel:
    """Read what a request says: in its body, which may be empty, and in its address."""
    try:
        sent: Any = orjson.loads(await request.body() or b"{}")
    except orjson.JSONDecodeError as error:
        raise RefusedRequestError(422, f"Invalid JSON in request body: {error}") from None
    if sent is None or isinstance(sent, dict):
        sent = {**(sent or {}), **request.query_params, **request.path_params}
    _check_storable(sent)
    try:
        return model.model_validate(_set(sent))
    except ValidationError as error:
        raise RefusedRequestError(422, problems(error, most=5)) from None


def _check_storable(value: object, *place: str) -> None:
    if isinstance(value, str) and "\0" in value:
        where = ".".join(place) or "the body"
        detail = f"{where}: the character NUL (U+0000) cannot be stored, leave it out"
        raise RefusedRequestError(422, detail)
    if not isinstance(value, dict | list):
        return
    if len(place) > _DEEPEST:
        detail = f"{place[0]}: at most {_DEEPEST} lists and objects may be within each other"
        raise RefusedRequestError(422, detail)
    for name, within in value.items() if isinstance(value, dict) else enumerate(value):
        _check_storable(name, *place)
        _check_storable(within, *place, str(name))
