"""Holes in who may call what: keys, scopes, projects, tokens of pods and workflows (X2)."""

from tests.campaign.bugs.bug import Edit
from tests.security.holes.hole import Hole, hole

MATRIX = "tests/unit/api/auth/test_matrix.py"
SCOPES = f"{MATRIX}::test_scopes_and_projects[one of two]"
BAD_KEY = f"{MATRIX}::test_invalid_keys_are_rejected_everywhere"
UPLOADS = "tests/unit/api/v1/test_uploads.py"
PROJECTS = "tests/cluster/api_http/test_projects.py"
PERMISSIONS = "tests/unit/api/auth/test_permissions.py"
WORKFLOWS = "tests/unit/api/auth/test_workflows.py"
TOKENS = "tests/unit/crds/test_pod_tokens.py"
BUILDS = "tests/unit/controller/deployment/test_decide.py"
OWN_IMAGE = f"{BUILDS}::test_image_of_another_repository_is_refused"
REPORTS = "tests/unit/controller/deployment/test_reported_results.py"
PODS = "tests/unit/api/internal/test_runs.py"

HOLES: tuple[Hole, ...] = (
    hole(
        "X2", "a run of a foreign project is shown", "api/v1/lookup.py",
        "row = await call.services.store.runs.get(name) if name else None\n"
        "    if row is None or not call.caller.can_see(row.project):",
        "row = await call.services.store.runs.get(name) if name else None\n    if row is None:",
        SCOPES,
    ),
    Hole(
        "X2", "a foreign project may be named",
        (
            Edit("api/auth/principal.py", "if not self.can_see(project):", "if False:"),
            # There is a second guard behind the first.
            Edit("api/auth/principal.py", "if not self.may(scope, project):", "if not self.may(scope):"),
        ),
        (SCOPES,),
    ),
    hole(
        "X2", "a scope is not asked for", "api/routing/endpoint.py",
        "            caller.require(self.scope)\n", "", SCOPES,
    ),
    hole(
        "X2", "lists show all projects", "api/v1/runs/routes.py",
        "projects=call.caller.projects,", "projects=None,",
        f"{MATRIX}::test_lists_hide_foreign_projects",
    ),
    hole(
        "X2", "what one caller was answered is answered to another", "api/routing/endpoint.py",
        'request.headers.get("Accept"), *access)', 'request.headers.get("Accept"))',
        "tests/unit/api/http/test_response_cache.py",
    ),
    hole(
        "X2", "a revoked key holds", "api/auth/api_keys.py",
        "return not key.revoked and (", "return (", f"{BAD_KEY}[revoked]",
    ),
    hole(
        "X2", "an expired key holds", "api/auth/api_keys.py",
        "(key.expires_at is None or now < key.expires_at)", "True", f"{BAD_KEY}[expired]",
    ),
    hole(
        "X2", "a key bound to projects makes one for all", "api/v1/keys/routes.py",
        "    _check_projects(call)\n", "", "tests/unit/api/v1/test_keys.py",
    ),
    hole(
        "X2", "the deploy scope may name Secrets", "api/v1/projects/view.py",
        '"image_pull_secrets", "secret_ref", "notifications")', '"image_pull_secrets", "notifications")',
        f"{PERMISSIONS}::test_fields_that_grant_permissions_need_admin",
    ),
    hole(
        "X2", "the deploy scope may send a Secret elsewhere", "api/v1/projects/routes.py",
        "view.redirected_secrets(call.body, project.spec)", "()",
        f"{PROJECTS}::test_destination_of_a_secret_needs_admin",
    ),
    hole(
        "X2", "a permission is decided on a row", "api/v1/projects/routes.py",
        "project = Project(manifest)", "project = row.as_object()",
        f"{PROJECTS}::test_a_permission_is_decided_on_the_object_not_on_an_older_row",
    ),
    hole(
        "X2", "a permission is decided on another version than the one patched",
        "api/v1/projects/spec_patch.py",
        '"uid": row.uid, "resourceVersion": manifest["metadata"]["resourceVersion"]', '"uid": row.uid',
        f"{PROJECTS}::test_a_secret_is_never_named_next_to_an_address_that_another_call_set",
    ),
    hole(
        "X2", "the run scope may choose the entrypoint", "api/v1/runs/routes.py",
        "    _check_entrypoint(call, deployment)\n", "",
        f"{PERMISSIONS}::test_run_scope_cannot_change_the_entrypoint",
    ),
    hole(
        "X2", "guesses are not counted", "api/routing/middleware.py",
        "request[ALLOWANCE] = await services.limiter.count(counter_key, per_minute)",
        "request[ALLOWANCE] = await services.limiter.count(counter_key, 10**6)",
        f"{PERMISSIONS}::test_guessing_is_rate_limited_by_address",
    ),
    hole(
        "X2", "a workflow's token of another audience is accepted", "api/auth/oidc.py",
        '                "strict_aud": True,\n', '                "verify_aud": False,\n', WORKFLOWS,
    ),
    Hole(
        "X2", "a workflow's token of another issuer is taken",
        (
            Edit("api/auth/oidc.py", "            issuer=issuer,\n", ""),
            # There is a first guard before this one.
            Edit(
                "api/auth/providers.py",
                "and claims.issuer == self._workflows.issuer:", "and claims.issuer:",
            ),
        ),
        (f"{WORKFLOWS}::test_invalid_tokens_get_identical_responses",),
    ),
    hole(
        "X2", "a workflow's token that has expired is taken", "api/auth/oidc.py",
        "        and now_seconds < expires + LEEWAY_SECONDS\n", "", WORKFLOWS,
    ),
    hole(
        "X2", "an issuer's key may be a weak one", "api/auth/jwks.py",
        "if isinstance(key, RSAPublicKey) and key.key_size not in RSA_KEY_BITS:", "if False:",
        "tests/unit/api/auth/test_jwks.py",
    ),
    hole(
        "X2", "a pull request has the rights of the repository", "api/auth/workflows.py",
        "return ref is None or not ref.startswith(PULL_REQUEST_REFS)", "return True", WORKFLOWS,
    ),
    hole(
        "X2", "an unsigned token is accepted", "crds/pod_tokens.py",
        "if not hmac.compare_digest(signature.encode(), _encode(_sign(key, body)).encode()):", "if False:",
        TOKENS,
    ),
    hole("X2", "a token never expires", "crds/pod_tokens.py", "if now >= expires:", "if False:", TOKENS),
    hole(
        "X2", "the address of one upload takes another", "api/v1/uploads/routes.py",
        '(token.kind, token.namespace, token.name) != ("upload", services.config.namespace, upload)',
        '(token.kind, token.namespace) != ("upload", services.config.namespace)', UPLOADS,
    ),
    hole(
        "X2", "a build's token opens runs", "api/internal/context.py",
        "if (token.kind, token.namespace) != (kind, context.config.namespace):",
        "if token.namespace != context.config.namespace:", PODS,
    ),
    hole(
        "X2", "a run's token opens other runs", "api/internal/context.py",
        "if token.name != name:", "if False:", PODS,
    ),
    hole(
        "X2", "the token of a run of that name before claims", "api/internal/claim.py",
        "if claim_request.run_uid != token.uid:", "if False:", PODS,
    ),
    hole(
        "X2", "a pod speaks for a run that it never claimed", "api/store/index/claims/claims.py",
        '        claims.c.nonce == bindparam("nonce"),\n', "", "tests/unit/api/store/index/test_claims.py",
    ),
    hole(
        "X2", "a pod speaks after the end of its run", "api/store/index/claims/claims.py",
        "        runs.c.status.not_in(ENDED),\n", "", "tests/unit/api/store/index/test_claims.py",
    ),
    hole(
        "X5", "a build names the image of another project", "controller/deployment/build_result.py",
        "return name == repository and", "return", OWN_IMAGE,
    ),
    hole(
        "X5", "a build names an image by tag", "controller/deployment/build_result.py",
        'if not _is_image_of(repository, str(result["image"])):',
        'if repository not in str(result["image"]):', OWN_IMAGE,
    ),
    hole(
        "X5", "a build needs the dependencies of another project", "controller/deployment/build_result.py",
        "or image != f\"{repository}:deps-{key}\"", "",
        f"{BUILDS}::test_dependency_image_of_another_repository_is_refused",
    ),
    hole(
        "X5", "a build answers for another deployment's pod", "controller/deployment/reported_results.py",
        "if not results.put(token.uid, pod_uid, result):",
        'if not results.put("", pod_uid, result):',
        f"{REPORTS}::test_token_reports_only_pods_of_its_deployment",
    ),
    hole(
        "X5", "one build's answers push out those of others", "controller/deployment/reported_results.py",
        "len(results) >= MAX_RESULTS_PER_DEPLOYMENT", "False", REPORTS,
    ),
)  # fmt: skip
