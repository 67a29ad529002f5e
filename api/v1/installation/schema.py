"""JSON Schema and example of the installation's state. Pure."""

from api.v1.deployments import schema as deployments
from api.v1.fields import COUNT, TEXT, described, nullable, response_object

COMPONENT = response_object(
    "InstallationComponent",
    {
        "name": described(TEXT, "`index`, `kube-apiserver` or `controller`; more may follow."),
        "ready": {
            "type": ["boolean", "null"],
            "description": "Whether it works now; null if nothing tells.",
        },
        "message": described(
            nullable(TEXT), "Why it is not ready, or who leads; null if nothing is to be said."
        ),
    },
)
INSTALLATION = response_object(
    "Installation",
    {
        "components": {"type": "array", "items": COMPONENT, "description": "Its parts."},
        "leading": {
            "type": "boolean",
            "description": "Whether the replica of the API server that answered is the leader.",
        },
        "runs": response_object(
            "InstallationRuns",
            {
                "pending": described(COUNT, "Runs that wait or start now."),
                "running": described(COUNT, "Runs that run now."),
            },
        ),
        "builds": response_object(
            "InstallationBuilds",
            {
                "waiting": described(COUNT, "Builds that wait for a slot."),
                "running": described(COUNT, "Builds that run now."),
                "slots": described(COUNT, "How many may run at a time, `CREWYARD_MAX_BUILDS`."),
                "deployments": {
                    "type": "array",
                    "items": deployments.ITEM,
                    "description": "The first 100: those that run, then the others, the oldest first.",
                },
            },
        ),
        "notifications": response_object(
            "InstallationNotifications",
            {
                "pending": described(COUNT, "Deliveries that are pending."),
                "failing": described(COUNT, "Receivers whose last delivery was given up."),
            },
        ),
    },
)
EXAMPLE = {
    "components": [
        {"name": "index", "ready": True, "message": None},
        {"name": "kube-apiserver", "ready": True, "message": None},
        {"name": "controller", "ready": True, "message": "crewyard-controller-7c9d-x2k4q leads"},
    ],
    "leading": True,
    "runs": {"pending": 1, "running": 4},
    "builds": {"waiting": 0, "running": 0, "slots": 2, "deployments": []},
    "notifications": {"pending": 0, "failing": 0},
}
