"""Calls the service in the name of other builds. `token` and `key` are what only the control has."""

import json
import urllib.request

from tries import attempt


def _call(places, method, address, body=None, bearer=""):
    content = None if body is None else json.dumps(body).encode()
    headers = {
        "Content-Type": "application/json",
        **({"Authorization": f"Bearer {bearer}"} if bearer else {}),
    }
    asked = urllib.request.Request(address, content, headers, method=method)
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return f"{answer.status} {answer.read()[:80]!r}"


def _forged(places):
    return places.get("token") or places["made_up"]


@attempt
def write_the_log_of_another_build(places):
    chunk = {"seq": 1, "text": "forged line\n"}
    body = {"pod": "forged", "container": "assemble", "chunks": [chunk]}
    return _call(
        places, "POST", f"{places['api']}/internal/v1/builds/{places['other']}/logs", body, _forged(places)
    )


@attempt
def write_the_log_of_another_build_without_a_token(places):
    chunk = {"seq": 1, "text": "forged line\n"}
    body = {"pod": "forged", "container": "assemble", "chunks": [chunk]}
    address = f"{places['api']}/internal/v1/builds/{places['other']}/logs"
    return _call(places, "POST", address, body, places.get("token", ""))


@attempt
def read_the_source_of_another_build(places):
    return _call(
        places, "GET", f"{places['api']}/internal/v1/uploads/{places['upload']}", None, _forged(places)
    )


@attempt
def answer_for_another_build(places):
    words = {"outcome": "built", "image": places["forged_image"], "plan": {}, "tree": "", "build_key": ""}
    body = {"pod_uid": places.get("pod_uid", "none"), "container": "assemble", "words": words}
    address = f"{places['controller']}/internal/v1/builds/{places['other']}/answer"
    return _call(places, "POST", address, body, _forged(places))


@attempt
def list_all_projects(places):
    return _call(places, "GET", f"{places['api']}/v1/projects", None, places.get("key", ""))


@attempt
def names_of_the_variables_of_another_project(places):
    address = f"{places['api']}/v1/projects/{places['other_project']}/env"
    return _call(places, "GET", address, None, places.get("key") or places["made_up"])


@attempt
def deploy_to_another_project(places):
    body = {"project": places["other_project"], "size": 100}
    return _call(places, "POST", f"{places['api']}/v1/uploads", body, places.get("key", ""))
