"""`/operator/live`: open pages of the console are refreshed every few seconds.

What they show changes all the time, and much of it is counted in the background; looking for changes would cost more
than the pages do. A page that takes long to render is refreshed less often (`assets/live.js`).
"""

import time
from typing import Final

from postroad.dashboard import live, requests
from postroad.dashboard.operator import console
from postroad.web import routing

REFRESH_SECONDS: Final = 5


async def _tick(request: requests.PageRequest) -> bytes:
    del request
    return str(time.monotonic() // REFRESH_SECONDS).encode()


async def show(request: requests.PageRequest) -> routing.Response:
    """The stream."""
    return live.stream(request, _tick)


ROUTES: Final = (console.get("/operator/live", show),)
