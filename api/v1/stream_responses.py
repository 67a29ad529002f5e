"""Responses other than JSON: event streams, logs and files. Pure. Called by tables of `api.v1`."""

from api.http import negotiation
from api.http.operation import ResponseSpec, empty_response, page_response
from api.http.query import Parameter
from api.v1 import examples, response_schemas

LAST_EVENT_ID = Parameter(
    "Last-Event-ID",
    {"type": "string"},
    description="The stream resumes after this id; an unknown id is ignored.",
)
STREAM_FINISHED = empty_response(
    "The stream has ended and has no events after Last-Event-ID: do not reconnect."
)
_LIST = page_response(response_schemas.EVENT, examples.EVENT)
EVENTS = ResponseSpec(
    200,
    "Server-sent events up to the terminal one, or a page of events, oldest first.",
    {negotiation.EVENT_STREAM: response_schemas.SSE, **_LIST.content},
    optional_headers=("Link", "Cache-Control"),
    examples={negotiation.EVENT_STREAM: examples.STREAM, **_LIST.examples},
)
BUILD_LOG = ResponseSpec(
    200,
    "The log so far, or server-sent `log` messages and, after the last, one `end` with the status.",
    {negotiation.TEXT: response_schemas.TEXT, negotiation.EVENT_STREAM: response_schemas.SSE},
    optional_headers=("Cache-Control",),
    examples={negotiation.TEXT: "Collecting crewai\n"},
)
RUN_LOG = ResponseSpec(
    200,
    "The log so far.",
    {negotiation.TEXT: response_schemas.TEXT},
    examples={negotiation.TEXT: examples.LOG},
)

FILE_HEADERS = (
    Parameter("Range", {"type": "string"}, description="One range of bytes, such as bytes=0-1023."),
    Parameter("If-None-Match", {"type": "string"}, description="The ETag of the client's copy."),
    Parameter("If-Range", {"type": "string"}, description="The ETag of the copy that the range continues."),
)
_FILE = ("ETag", "Accept-Ranges", "Content-Disposition", "Cache-Control")
FILE = (
    ResponseSpec(200, "The bytes.", {negotiation.ANY: {}}, headers=_FILE),
    ResponseSpec(206, "The range of bytes.", {negotiation.ANY: {}}, headers=(*_FILE, "Content-Range")),
    ResponseSpec(
        307,
        "If the installation enables it: the bytes are at this URL of the object store for five "
        "minutes. Send that request without the API key.",
        headers=("Location", "ETag", "Cache-Control"),
    ),
    ResponseSpec(304, "Not modified.", headers=("ETag",)),
)
