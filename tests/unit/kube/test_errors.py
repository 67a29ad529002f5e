"""Classes of apiserver errors, where a policy denied a call."""

import pytest

from kube import errors

WEBHOOK = 'admission webhook "validate.example.com" denied the request: no label'
TERMINATING = 'runs "run-a" is forbidden: unable to create new content in namespace crews because it is '
UNANSWERED = 'Internal error occurred: failed calling webhook "validate.example.com": no endpoints available'
OVERSIZED = "code = ResourceExhausted desc = trying to send message larger than max"
POLICY = "ValidatingAdmissionPolicy 'team' with binding 'team' denied request: no label"


@pytest.mark.parametrize(
    ("code", "reason", "message", "expected", "final"),
    [
        # A webhook that names neither code nor reason.
        (400, None, WEBHOOK, errors.AdmissionDenied, False),
        (403, None, WEBHOOK, errors.AdmissionDenied, False),
        (403, "Forbidden", POLICY, errors.AdmissionDenied, False),
        # The default of a ValidatingAdmissionPolicy; callers of the API get 400.
        (422, "Invalid", POLICY, errors.Invalid, False),
        # One of this installation: an image by its tag, for example.
        (422, "Invalid", POLICY.replace("'team'", "'crewyard-pods'"), errors.Invalid, True),
        # The chart puts the release's name before, or within.
        (422, "Invalid", POLICY.replace("'team'", "'prod-crewyard-pods'"), errors.Invalid, True),
        (422, "Invalid", POLICY.replace("'team'", "'crewyard-prod-waiting-pods'"), errors.Invalid, True),
        (422, "Invalid", POLICY.replace("'team'", "'labels-of-crewyard'"), errors.Invalid, False),
        (422, "Invalid", "spec.timeout: no duration", errors.Invalid, True),
        (400, None, "the body cannot be read", errors.KubeError, False),
        (403, "Forbidden", "pods is forbidden: exceeded quota: pods", errors.QuotaExceeded, False),
        (403, "Forbidden", f"{TERMINATING}being terminated", errors.NamespaceTerminating, False),
        (409, "Conflict", WEBHOOK, errors.KubeConflict, False),
        (500, "InternalError", UNANSWERED, errors.WebhookUnavailable, False),
        (500, "InternalError", "etcdserver: request timed out", errors.KubeUnavailable, False),
        (413, "RequestEntityTooLarge", "limit is 3145728", errors.ObjectTooLarge, True),
        (500, None, "etcdserver: request is too large", errors.ObjectTooLarge, True),
        (500, None, f"rpc error: {OVERSIZED} (2100000 vs. 2097152)", errors.ObjectTooLarge, True),
    ],
)
def test_a_denial_is_no_invalid_object(code, reason, message, expected, final):
    body = {"message": message} | ({"reason": reason} if reason else {})
    error = errors.from_status(code, body)
    assert (type(error), errors.is_final(error)) == (expected, final)
