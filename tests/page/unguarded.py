"""The page as it was served before there was a guard: what the attack in the tests has to find."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from crag.page.app import app as guarded

HOSTS = ["127.0.0.1", "localhost", "api"]
app = Starlette(
    routes=guarded.routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)]
)
