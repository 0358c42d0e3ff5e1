"""What clients send; a wrong body or query is refused with the field and what is wrong with it.

Whatever PostgreSQL could not store is refused here: it would refuse it without naming a field.
What is unknown is ignored, as newer clients send more, and what is null is not set.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import orjson
from langgraph_sdk.schema import Command
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from starlette.requests import Request
from typing_extensions import TypedDict

from crag.plain import problems
from crag.server.refusals import RefusedRequestError
from crag.server.runs import Cancel, RunStatus, Strategy
from crag.server.streaming import Mode
from crag.server.threads import Status

_Model = TypeVar("_Model", bound=BaseModel)
_DEEPEST = 200
"""Most lists and objects within each other, of which writers of JSON take 254."""


def _checked_graph(metadata: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(metadata.get("graph_id"), str | None):
        raise ValueError("graph_id: must be text")  # noqa: TRY004 - what pydantic reports
    return metadata


def _unserved(instead: str) -> Callable[[object], None]:
    """Refuse what would be missed if it were ignored; `instead` says what to do."""

    def check(value: object) -> None:
        if value:  # Some clients send an empty object, a zero or null for what is not set.
            raise ValueError("this server does not read it: " + instead)

    return check


def _set(sent: object) -> object:
    """Leave out what is null."""
    if not isinstance(sent, dict):
        return sent
    return {name: value for name, value in sent.items() if value is not None}


def _modes(sent: object) -> object:
    return [sent] if isinstance(sent, str) else sent or ["values"]


Names = list[str] | Literal["*"] | None
Limit = Annotated[int, Field(ge=1, le=1000)]
Offset = Annotated[int, Field(ge=0, lt=2**63)]
Metadata = Annotated[dict[str, Any], AfterValidator(_checked_graph)]


class Search(BaseModel):
    """What all searches take."""

    metadata: Metadata | None = None
    limit: Limit = 10
    offset: Offset = 0


class AssistantSearch(Search):
    """`POST /assistants/search` and `/assistants/count`."""

    graph_id: str | None = None
    name: str | None = None


class ThreadSearch(Search):
    """`POST /threads/search` and `/threads/count`."""

    status: Status | None = None
    ids: list[UUID] | None = None
    sort_by: Literal["thread_id", "status", "created_at", "updated_at"] = "created_at"
    sort_order: Literal["asc", "desc"] = "desc"
    values: Annotated[object, AfterValidator(_unserved("search by metadata"))] = Field(
        None, exclude=True
    )


class ThreadNew(BaseModel):
    """`POST /threads`."""

    thread_id: UUID | None = None
    metadata: Metadata | None = None
    if_exists: Literal["raise", "do_nothing"] = "raise"
    supersteps: Annotated[object, AfterValidator(_unserved("write the state afterwards"))] = None


class ThreadChange(BaseModel):
    """`PATCH /threads/{thread_id}`."""

    metadata: Metadata = {}


class Checkpoint(BaseModel):
    """The address of a checkpoint within its thread."""

    checkpoint_id: str | None = None
    checkpoint_ns: str = ""
    checkpoint_map: dict[str, Any] | None = None


def _at(sent: object) -> object:
    return {"checkpoint_id": sent} if isinstance(sent, str) else sent


At = Annotated[Checkpoint, BeforeValidator(_at)]
"""A checkpoint, whose id alone is enough."""


class StateAt(BaseModel):
    """`POST /threads/{thread_id}/state/checkpoint`."""

    checkpoint: At
    subgraphs: bool = False


class Placed(BaseModel):
    """What begins at a checkpoint, or at the last one."""

    checkpoint: Checkpoint | None = None
    checkpoint_id: str | None = None

    @property
    def at(self) -> Checkpoint:
        """Where it begins."""
        return self.checkpoint or Checkpoint(checkpoint_id=self.checkpoint_id)


class StateChange(Placed):
    """`POST /threads/{thread_id}/state`."""

    values: Any = None
    as_node: str | None = None


class HistoryQuery(BaseModel):
    """`GET` and `POST /threads/{thread_id}/history`."""

    limit: Limit = 10
    before: At | None = None
    metadata: Metadata | None = None
    checkpoint: At | None = None


class Query(BaseModel):
    """What the address of a request without a body may say."""

    checkpoint: At = Checkpoint()
    subgraphs: bool = False
    status: RunStatus | None = None
    limit: Limit = 10
    offset: Offset = 0
    xray: int | bool = Field(default=False, union_mode="left_to_right")
    action: Cancel = "interrupt"
    wait: bool = False
    cancel_on_disconnect: bool = False


class Config(TypedDict, total=False):
    """What LangChain calls the configuration of a run."""

    configurable: dict[str, Any]
    metadata: dict[str, Any]
    tags: list[str]
    recursion_limit: int


class RunNew(Placed):
    """`POST …/runs`, `…/runs/stream` and `…/runs/wait`."""

    assistant_id: str
    input: Any = None
    command: Annotated[Command, BeforeValidator(_set)] | None = None
    config: Annotated[Config, BeforeValidator(_set)] | None = None
    context: dict[str, Any] | None = None
    metadata: Metadata | None = None
    stream_mode: Annotated[list[Mode], BeforeValidator(_modes)] = ["values"]
    stream_subgraphs: bool = False
    interrupt_before: Names = None
    interrupt_after: Names = None
    multitask_strategy: Strategy = "enqueue"
    on_disconnect: Literal["cancel", "continue"] = "continue"
    on_completion: Literal["delete", "keep"] = "delete"
    if_not_exists: Literal["create", "reject"] = "reject"
    durability: Literal["sync", "async", "exit"] = "async"
    after_seconds: Annotated[object, AfterValidator(_unserved("start the run at that time"))] = None


async def read(request: Request, model: type[_Model]) -> _Model:
    """Read what a request says: its body, which may be empty, or its address if it has none."""
    if request.method == "GET" or model is Query:
        sent: Any = {**request.query_params, **request.path_params}
    else:
        try:
            sent = orjson.loads(await request.body() or b"{}")
        except orjson.JSONDecodeError as error:
            detail = f"Invalid JSON in request body: {error}"
            raise RefusedRequestError(422, detail) from None
    _check_storable(sent)
    try:
        return model.model_validate({} if sent is None else _set(sent))
    except ValidationError as error:
        raise RefusedRequestError(422, problems(error, most=5)) from None


def _check_storable(value: object, *place: str) -> None:
    detail = ""
    if isinstance(value, str) and "\0" in value:
        where = ".".join(place) or "the body"
        detail = f"{where}: the character NUL (U+0000) cannot be stored, leave it out"
    elif isinstance(value, dict | list) and len(place) > _DEEPEST:
        detail = f"{place[0]}: at most {_DEEPEST} lists and objects may be within each other"
    if detail:
        raise RefusedRequestError(422, detail)
    if isinstance(value, dict):
        for name, within in value.items():
            _check_storable(name, *place)
            _check_storable(within, *place, name)
    elif isinstance(value, list):
        for number, within in enumerate(value):
            _check_storable(within, *place, str(number))
