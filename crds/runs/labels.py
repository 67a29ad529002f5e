"""Rules of a user's labels on runs: those of Kubernetes, without the prefixes of the service. Pure.

Called by the API and by the controller.
"""

from collections.abc import Mapping

from crds import names

MAX_LABELS = 16
VALUE_PATTERN = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS_PART = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
# A prefix of more than 253 characters is refused first.
NAME_PATTERN = f"(?![^/=]{{254}})({_DNS_PART}([.]{_DNS_PART}){{0,7}}/)?{_NAME}"
USER_NAME_PATTERN = f"(?!([^/]*[.])?(crewyard[.]dev|kubernetes[.]io|k8s[.]io)/){NAME_PATTERN}"
NAME_MAX_LENGTH = 317
NAME_RULE = (
    "A label's name has letters, digits, -, _ and ., and perhaps a DNS prefix such as example.com/; "
    "the prefixes crewyard.dev, kubernetes.io and k8s.io are the service's."
)
VALUE_RULE = "A label's value has at most 63 letters, digits, -, _ and ., or is empty."
_OWN_PREFIXES = (f"{names.GROUP}/", "app.kubernetes.io/")


def shown(labels: Mapping[str, str]) -> dict[str, str] | None:
    """Return the user's labels of an object, and the name of its schedule; None if there are none.

    At most 16, by name: another client may set more.
    """
    chosen = sorted(
        (key, value)
        for key, value in labels.items()
        if key == names.LABEL_SCHEDULE or not key.startswith(_OWN_PREFIXES)
    )
    return dict(chosen[:MAX_LABELS]) or None
