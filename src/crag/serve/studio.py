"""What `langgraph dev` serves besides the graphs: nothing but who may use it.

`langgraph.json` names it as `http.app`. The origins in its `cors` are those whose pages may ask,
which makes the link to Studio work that `langgraph dev` prints, and no other site.
"""

import json
import os

from starlette.applications import Starlette

from crag.errors import SettingsError
from crag.serve.access import access
from crag.serve.settings import ServeSettings


def settings_of_process() -> ServeSettings:
    """Return the settings of the environment, with the origins that langgraph.json names.

    Raises:
        SettingsError: there are users, whose threads `langgraph dev` would not keep apart.
    """
    settings = ServeSettings()
    if settings.has_users:
        allowed = "unset it for langgraph dev, which is for one developer; users have crag serve"
        raise SettingsError("CRAG_SERVE_KEYS", "set", allowed)
    http = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}")
    origins = frozenset((http.get("cors") or {}).get("allow_origins") or ())
    return settings.model_copy(update={"origins": settings.origins | origins})


app = Starlette(middleware=access(settings_of_process()))
