"""What each of several processes serves: one graph of a few steps, over one database.

`python -m tests.serve.several DATABASE FOLDER PORT`, with users in CRAG_SERVE_KEYS.
"""

import sys

import uvicorn

from crag.runtime.environment import Environment
from crag.serve.app import create
from crag.serve.settings import ServeSettings
from tests.serve.slow import slow

if __name__ == "__main__":
    database, folder, port = sys.argv[1:]
    app = create(
        Environment(index=f"{folder}/index"), ServeSettings(database=database), {"crag": slow(0.02)}
    )
    uvicorn.run(app, port=int(port), log_level="error", timeout_graceful_shutdown=2)
