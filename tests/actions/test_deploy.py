"""The action `deploy`, run as a step."""

import io
import json
import tarfile

import pytest

from tests.actions.service import KEY, REQUEST_TOKEN, error

CREW = {"main.py": "def kickoff(inputs):\n    return inputs\n", "crew.toml": '[deployment]\npython = "2.7"\n'}


def members(raw: bytes) -> dict[str, tuple[int, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return {member.name: (member.mode, tar.extractfile(member).read()) for member in tar}


async def test_a_commit_becomes_an_active_deployment(runner, service):
    sha = runner.commit({**CREW, "untracked.txt": "x"}, "Say hello")
    runner.git("rm", "-q", "--cached", "untracked.txt")
    (runner.workspace / "main.py").write_text("print('changed by a step before')\n")
    done = await runner.deploy()
    assert done.code == 0, done.log
    assert service.deployed["git_sha"] == sha
    assert service.deployed["message"] == "Say hello"
    assert "preview" not in service.deployed
    assert members(service.uploads["upl_0"]) == {
        "crew.toml": (0o644, CREW["crew.toml"].encode()),
        "main.py": (0o644, b"print('changed by a step before')\n"),
    }
    assert done.outputs["deployment-id"].startswith("dep_")
    assert done.outputs["status"] == "active"
    assert done.outputs["url"] == f"{service.url}/console/#/deployments/{done.outputs['deployment-id']}"
    assert "| Status | **active** |" in done.summary and sha[:12] in done.summary
    assert "step 1\nstep 2\n" in done.log
    assert done.commands[0] == f"::add-mask::{KEY}"
    assert KEY not in done.log.replace(f"::add-mask::{KEY}", "")


async def test_files_that_the_configuration_excludes_are_not_sent(runner, service):
    configuration = '[build]\nexclude = ["*.toml", "!b.toml", "data"]\n'
    files = {"main.py": "1", "a.toml": "", "b.toml": "", "data/x": "", "crew.toml": configuration}
    runner.commit(files)
    done = await runner.deploy(exclude="b.toml")
    assert done.code == 0
    assert set(members(service.uploads["upl_0"])) == {"main.py", "crew.toml"}
    assert "1 files excluded by the input exclude" in done.log
    assert "2 files excluded by the configuration" in done.log


async def test_faults_are_retried_and_the_deployment_is_created_once(runner, service):
    runner.commit(CREW)
    service.log = [f"line {number}" for number in range(40)]
    service.cut_after.extend([4, 5, 11, 1])
    busy = {"Retry-After": "0"}
    service.faults["GET /v1/projects/{name}"].append(error(429, "rate_limited", "slowly", busy))
    service.faults["POST /v1/uploads"].append(error(503, "unavailable", "soon", busy))
    service.faults["PUT /v1/uploads/{id}/content"].extend(["cut", error(500, "internal_error", "oh", busy)])
    service.faults["POST /v1/deployments"].extend(["after", error(502, "http", "bad gateway", busy)])
    service.faults["GET /v1/deployments/{id}/logs"].append(error(503, "unavailable", "soon", busy))
    service.faults["GET /v1/deployments/{id}"].append("cut")
    done = await runner.deploy()
    assert done.code == 0, done.log
    assert len(service.created) == 1
    printed = [line for line in done.log.splitlines() if line.startswith("line ")]
    assert printed == service.log


async def test_a_client_error_is_not_retried(runner, service):
    runner.commit(CREW)
    service.faults["POST /v1/uploads"].append(error(403, "forbidden", "the key has not the scope deploy"))
    done = await runner.deploy()
    assert done.code == 1
    assert done.errors() == ["::error title=Crewyard::the key has not the scope deploy (403 forbidden)"]
    assert sum(path == "/v1/uploads" for _, path, _, _ in service.requests) == 1


async def test_a_failed_build_is_an_annotation_in_its_file(runner, service):
    runner.commit({"crews/a/crew.toml": CREW["crew.toml"], "crews/a/main.py": "", "other.py": ""})
    service.build = {
        "status": "failed",
        "error": {
            "reason": "ConfigInvalid",
            "message": "crew.toml line 2: deployment.python is '2.7'; offered here: 3.11, 100%\n::error::no",
            "hint": "Choose one of those",
        },
    }
    done = await runner.deploy(working_directory="crews/a")
    assert done.code == 1
    assert set(members(service.uploads["upl_0"])) == {"crew.toml", "main.py"}
    (line,) = done.errors()
    assert line.startswith(
        "::error file=crews/a/crew.toml,line=2,title=ConfigInvalid::crew.toml line 2: deployment.python "
        "is '2.7'; offered here: 3.11, 100%25%0A::error::no%0AChoose one of those%0A"
    )
    assert done.outputs["status"] == "failed"
    assert "ConfigInvalid" in done.summary


async def test_a_project_that_follows_git_deploys_the_commit(runner, service):
    service.projects["research"]["source"] = {"git": {"url": "https://git.example.org/x", "path": "crews/a"}}
    sha = runner.commit(CREW)
    done = await runner.deploy()
    assert done.code == 0, done.log
    assert service.deployed["source"] == {"git": {"commit": sha}}
    assert not service.announced
    again = await runner.deploy()
    assert again.outputs["deployment-id"] == done.outputs["deployment-id"]


async def test_a_key_without_read_scope_gets_an_error_that_names_it(runner, service):
    service.projects["research"]["source"] = {"git": {"url": "https://git.example.org/x"}}
    service.faults["GET /v1/projects/{name}"].append(error(403, "forbidden", "no"))
    runner.commit(CREW)
    done = await runner.deploy()
    assert done.code == 1
    assert "scope read" in done.errors()[0] and "override" in done.errors()[0]


def pull_request(runner, **more):
    event = {"pull_request": {"number": 12, "title": "Add a tool", "head": {"sha": "b" * 40}}, **more}
    path = runner.home / "event.json"
    path.write_text(json.dumps(event))
    runner.environment |= {"GITHUB_EVENT_PATH": str(path), "GITHUB_EVENT_NAME": "pull_request"}


async def test_a_pull_request_gives_its_head_and_its_title(runner, service):
    merge = runner.commit(CREW, "Merge b into main")
    pull_request(runner)
    runner.environment["GITHUB_SHA"] = merge
    service.build = {"status": "superseded"}
    done = await runner.deploy(preview="true")
    assert done.code == 0, done.log
    assert service.deployed["git_sha"] == "b" * 40
    assert service.deployed["message"] == "Add a tool"
    assert service.deployed["preview"] == {"pull_request": 12}
    assert done.outputs["status"] == "superseded"


async def test_pull_request_target_deploys_the_base(runner, service):
    base = runner.commit(CREW, "Base")
    pull_request(runner)
    runner.environment |= {"GITHUB_SHA": base, "GITHUB_EVENT_NAME": "pull_request_target"}
    await runner.deploy()
    assert service.deployed["git_sha"] == base
    assert service.deployed["message"] == "Base"


async def test_without_waiting_the_build_continues(runner, service):
    runner.commit(CREW)
    done = await runner.deploy(wait="false", message="By hand")
    assert done.code == 0
    assert done.outputs["status"] == "building"
    assert service.deployed["message"] == "By hand"
    assert not any("logs" in path for _, path, _, _ in service.requests)


async def test_a_build_that_takes_too_long_ends_the_step(runner, service):
    runner.commit(CREW)
    service.silent = True
    # On a busy machine the short time may be over before the deployment is created.
    for timeout in ("8s", "60s"):
        done = await runner.deploy(timeout=timeout)
        if "status" in done.outputs:
            break
    assert done.code == 1
    assert "longer than the input timeout allows" in done.errors()[0]
    assert done.outputs["status"] == "building"


NEWER = {"status": "active", "created_at": "2026-11-22T10:00:00Z"}
OLDER = {"status": "active", "created_at": "2026-11-20T10:00:00Z"}
SKIPPED = {"reason": "Superseded", "message": "Commit 1f7a (dep-b) followed before the build started."}


@pytest.mark.parametrize(
    ("build", "notice"),
    [
        ({"status": "superseded"}, "dep_a0 is built, but the newer deployment dep_b is active."),
        ({"status": "failed", "error": SKIPPED}, f"{SKIPPED['message']} (dep_a0)"),
    ],
)
async def test_a_newer_deployment_is_named_by_a_notice(runner, service, build, notice):
    runner.commit(CREW)
    service.projects["research"]["active_deployment_id"] = "dep_b"
    service.deployments["dep_b"] = NEWER
    service.build = build
    done = await runner.deploy()
    assert done.code == 0
    assert [command for command in done.commands if command.startswith("::notice")] == [f"::notice::{notice}"]


async def test_a_deployment_that_does_not_become_active_fails(runner, service):
    runner.commit(CREW)
    service.projects["research"]["active_deployment_id"] = "dep_b"
    service.deployments["dep_b"] = OLDER
    service.build = {"status": "superseded"}
    done = await runner.deploy()
    assert done.code == 1
    (annotation,) = (command for command in done.commands if command.startswith("::error"))
    assert "dep_a0 is built, but does not become active: the deployment dep_b is." in annotation
    assert done.outputs["status"] == "superseded"


async def test_a_key_that_cannot_read_the_project_gets_a_notice(runner, service):
    runner.commit(CREW)
    service.faults["GET /v1/projects/{name}"].extend([error(403, "forbidden", "no") for _ in range(2)])
    service.build = {"status": "superseded"}
    done = await runner.deploy()
    assert done.code == 0
    assert "::notice::dep_a0 is built, but another deployment is active." in done.commands


HOSTILE = [
    "::error::from the crew",
    "  ::set-output name=status::forged",
    "##[error]old style",
    "text\r::add-mask::a\r\n::stop-commands::x",
    "::endgroup::",
    "a\x0b::warning::b\x85::warning::c\u2028::warning::d",
    "$(touch /tmp/x) `id` ${{ secrets.KEY }}",
    "\x1b[2J\x1b]0;title\x07gone\x00",
]


async def test_build_output_is_never_a_command(runner, service):
    runner.commit(CREW, "::error::subject | `x` [a](http://evil) <b>")
    service.log = HOSTILE
    done = await runner.deploy()
    assert done.code == 0
    assert [command.split("::")[1].split(" ")[0] for command in done.commands] == [
        "add-mask",
        "group",
        "endgroup",
    ]
    assert "\x1b[2J" not in done.log and "\x00" not in done.log
    assert "[a](http" not in done.summary and "<b>" not in done.summary.replace("\\<", "")
    assert set(done.outputs) == {"deployment-id", "status", "url"}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"project": "Not a name; $(id)"}, "project"),
        ({"wait": "perhaps"}, "wait"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": "0s"}, "timeout"),
        ({"working_directory": "no/such"}, "working-directory"),
        ({"exclude": "../x"}, "exclude"),
        ({"api_url": ""}, "api-url"),
        ({"api_url": "file:///etc/passwd"}, "api-url"),
        ({"api_url": "https://user:secret@x"}, "api-url"),
        ({"api_key": ""}, "forks"),
        ({"api_key": "two words"}, "api-key"),
        ({"oidc_audience": "crewyard"}, "not both"),
        ({"api_key": "", "oidc_audience": "crewyard"}, "id-token: write"),
    ],
)
async def test_a_wrong_input_is_named(runner, service, inputs, message):
    runner.commit(CREW)
    done = await runner.deploy(**inputs)
    assert done.code == 1
    (line,) = done.errors()
    assert message in line and "secret@" not in done.log
    assert not service.requests


async def test_a_missing_checkout_and_an_unknown_project_name_the_next_step(runner):
    done = await runner.deploy()
    assert "actions/checkout" in done.errors()[0]
    runner.commit(CREW)
    assert "Create it first" in (await runner.deploy(project="other")).errors()[0]


async def test_a_too_large_archive_is_reported_before_the_upload(runner, service):
    service.max_upload = 100
    runner.commit(CREW)
    done = await runner.deploy()
    assert "context_bytes" in done.errors()[0] and "title=ContextTooLarge" in done.errors()[0]
    assert not service.uploads


async def test_a_workflow_authenticates_with_oidc(runner, service):
    runner.commit(CREW)
    runner.environment |= {
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{service.url}/token?v=1",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
    }
    done = await runner.deploy(api_key="", oidc_audience="https://crewyard.example.org/a b")
    assert done.code == 0, done.log
    token = "jwt-https://crewyard.example.org/a b-1"
    assert f"::add-mask::{token}" in done.commands
    assert any(headers.get("Authorization") == f"Bearer {token}" for _, _, headers, _ in service.requests)


async def test_an_expired_token_is_renewed(runner, service):
    runner.commit(CREW)
    runner.environment |= {
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{service.url}/token",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
    }
    service.faults["GET /v1/deployments/{id}/logs"].append(error(401, "unauthorized", "expired"))
    done = await runner.deploy(api_key="", oidc_audience="audience")
    assert done.code == 0, done.log
    assert service.tokens == 2 and "::add-mask::jwt-audience-2" in done.commands


async def test_a_canceled_workflow_does_not_stop_the_build(runner, service):
    runner.commit(CREW)
    service.silent = True
    process = await runner.start("deploy", project="research")
    while await process.stdout.readline() != b"step 2\n":
        pass
    process.terminate()
    done = await runner.done(process)
    assert done.code == 130 and "continues" in done.log
    assert done.outputs["status"] == "building"


async def test_redirects_never_receive_the_key(runner, service):
    from aiohttp import web

    runner.commit(CREW)
    away = web.Response(status=302, headers={"Location": f"{service.url}/token?audience=x"})
    service.faults["GET /v1/projects/{name}"].append(away)
    done = await runner.deploy()
    assert done.code == 1 and "redirect" in done.errors()[0]
    assert len(service.requests) == 1
