"""What `langgraph dev` serves besides the graphs: nothing but who may use it.

`langgraph.json` names it as `http.app`. The origins in its `cors` are those whose pages may ask,
which makes the link to Studio work that `langgraph dev` prints, and no other site. With users,
whose threads `langgraph dev` would not keep apart, it does not start.
"""

import json
import os

from starlette.applications import Starlette

from crag.errors import SettingsError
from crag.serve.access import access
from crag.serve.settings import ServeSettings

settings = ServeSettings()
if settings.has_users:
    _allowed = "unset it for langgraph dev, which is for one developer; users have crag serve"
    raise SettingsError("CRAG_SERVE_KEYS", "set", _allowed)
_http = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}")
_origins = settings.origins.union((_http.get("cors") or {}).get("allow_origins") or ())
app = Starlette(middleware=access(settings.model_copy(update={"origins": _origins})))
