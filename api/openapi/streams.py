"""The answers that are no JSON: event streams, logs and files. Pure. Called by the tables of `api.v1`."""

from api.http import negotiation
from api.http.operation import Answer, nothing, page
from api.http.query import Parameter
from api.openapi import examples, shapes

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
    {negotiation.EVENT_STREAM: shapes.SSE, **_LIST.content},
    optional=("Link", "Cache-Control"),
    examples={negotiation.EVENT_STREAM: examples.STREAM, **_LIST.examples},
)
BUILD_LOG = Answer(
    200,
    "The log so far, or server-sent `log` messages and, after the last, one `end` with the status.",
    {negotiation.TEXT: shapes.TEXT, negotiation.EVENT_STREAM: shapes.SSE},
    optional=("Cache-Control",),
    examples={negotiation.TEXT: "Collecting crewai\n"},
)
RUN_LOG = Answer(
    200, "The log so far.", {negotiation.TEXT: shapes.TEXT}, examples={negotiation.TEXT: examples.LOG}
)

FILE_HEADERS = (
    Parameter("Range", {"type": "string"}, description="One range of bytes, such as bytes=0-1023."),
    Parameter("If-None-Match", {"type": "string"}, description="The ETag of what the caller has."),
    Parameter("If-Range", {"type": "string"}, description="The ETag of what a range would continue."),
)
_FILE = ("ETag", "Accept-Ranges", "Content-Disposition", "Cache-Control")
FILE = (
    Answer(200, "The bytes.", {negotiation.ANY: {}}, headers=_FILE),
    Answer(206, "The range of bytes.", {negotiation.ANY: {}}, headers=(*_FILE, "Content-Range")),
    Answer(
        307,
        "Where the installation says so: the bytes are at this address of the object store, for five "
        "minutes. Ask there without the API key.",
        headers=("Location", "ETag", "Cache-Control"),
    ),
    Answer(304, "The caller has these bytes.", headers=("ETag",)),
)
