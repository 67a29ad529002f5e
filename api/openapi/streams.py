"""The answers that are no JSON: event streams, logs and files. Pure. Called by the tables of `api.routes`."""

from api import media
from api.openapi import examples, shapes
from api.openapi.operation import Answer, nothing, page
from api.parameters import Parameter

LAST_EVENT_ID = Parameter(
    "Last-Event-ID",
    {"type": "string"},
    description="The stream continues after it; one that was never given counts as none.",
)
OVER = nothing("There is nothing after Last-Event-ID and never will be: do not reconnect.")
_LIST = page(shapes.EVENT, examples.EVENT)
EVENTS = Answer(
    200,
    "Server-sent events to the terminal one, or a page of events, oldest first.",
    {media.EVENT_STREAM: shapes.SSE, **_LIST.content},
    optional=("Link", "Cache-Control"),
    examples={media.EVENT_STREAM: examples.STREAM, **_LIST.examples},
)
BUILD_LOG = Answer(
    200,
    "The log so far, or server-sent `log` messages and, after the last, one `end` with the status.",
    {media.TEXT: shapes.TEXT, media.EVENT_STREAM: shapes.SSE},
    optional=("Cache-Control",),
    examples={media.TEXT: "Collecting crewai\n"},
)
RUN_LOG = Answer(200, "The log so far.", {media.TEXT: shapes.TEXT}, examples={media.TEXT: examples.LOG})

FILE_HEADERS = (
    Parameter("Range", {"type": "string"}, description="One range of bytes, such as bytes=0-1023."),
    Parameter("If-None-Match", {"type": "string"}, description="The ETag of what the caller has."),
    Parameter("If-Range", {"type": "string"}, description="The ETag of what a range would continue."),
)
_FILE = ("ETag", "Accept-Ranges", "Content-Disposition", "Cache-Control")
FILE = (
    Answer(200, "The bytes.", {media.ANY: {}}, headers=_FILE),
    Answer(206, "The range of bytes.", {media.ANY: {}}, headers=(*_FILE, "Content-Range")),
    Answer(
        307,
        "Where the installation says so: the bytes are at this address of the object store, for five "
        "minutes. Ask there without the API key.",
        headers=("Location", "ETag", "Cache-Control"),
    ),
    Answer(304, "The caller has these bytes.", headers=("ETag",)),
)
