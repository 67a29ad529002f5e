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
PROOFS = "tests/unit/controller/build_proof/test_proof.py"
REPORTS = "tests/unit/controller/deployment/test_reported_results.py"
BINDINGS = "tests/unit/api/store/index/test_key_bindings.py"
PODS = "tests/unit/api/internal/test_runs.py"
USERS = "tests/cluster/admission/test_users.py"

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
        'projects=call.caller.grants.projects_with("read"),', "projects=None,",
        f"{MATRIX}::test_lists_hide_foreign_projects",
    ),
    hole(
        "X2", "what one caller was answered is answered to another", "api/routing/endpoint.py",
        '_accept(request), *access)', '_accept(request))',
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
        "X2", "a key outlives its project", "api/store/index/projects.py",
        """            if holder in (None, uid):
                await key_bindings.revoke(connection, self._namespace, name, uid, now)
""", "",
        f"{BINDINGS}::test_removed_project_revokes_its_keys",
    ),
    hole(
        "X2", "a key opens the next project of the name", "api/store/index/key_bindings.py",
        "name not in bound or bound[name] == current.get(name)", "True",
        f"{BINDINGS}::test_key_is_refused_where_only_the_uid_differs",
    ),
    hole(
        "X2", "a key that was made before its project holds for the next one", "api/store/index/projects.py",
        "await key_bindings.bind(connection, self._namespace, project.name, project.uid)", "pass",
        f"{BINDINGS}::test_key_before_its_project_is_bound_to_the_first",
    ),
    hole(
        "X2", "another repository takes the name", "api/auth/oidc.py",
        "if pinned == workflow.repository_id:", "if True:",
        f"{WORKFLOWS}::test_first_use_pins_the_repository",
    ),
    hole(
        "X2", "a workflow of any event is let in", "api/auth/workflows.py",
        "event not in FORK_EVENTS if self.event is None", "True if self.event is None",
        f"{WORKFLOWS}::test_entry_names_event_repository_and_workflow",
    ),
    hole(
        "X2", "the scope preview deploys to production", "api/v1/deployments/create.py",
        '        call.caller.require("deploy", project.name)\n', "        pass\n",
        f"{WORKFLOWS}::test_preview_scope_deploys_previews_only",
    ),
    hole(
        "X2", "the commit of any upload is reported", "crds/github/proven_commits.py",
        "return any(one is not None and hmac.", "return True or any(one is not None and hmac.",
        "tests/unit/controller/github/test_report.py"
        "::test_unproven_commit_is_reported_where_no_branch_rule_waits",
    ),
    hole(
        "X2", "a workflow proves any commit", "api/v1/deployments/view.py",
        'known is not None and spec.get("gitSha") == known.commit', "known is not None",
        "tests/unit/api/v1/test_proven_commits.py::test_other_tokens_prove_nothing",
    ),
    hole(
        "X2", "a key bound to projects makes one for all", "api/v1/keys/routes.py",
        "    _check_projects(call)\n", "", "tests/unit/api/v1/test_keys.py",
    ),
    hole(
        "X2", "the deploy scope may name Secrets", "api/v1/projects/view.py",
        'if field in _ADMIN_FIELDS or key == "secret_ref":', "if field in _ADMIN_FIELDS:",
        f"{PERMISSIONS}::test_fields_that_grant_permissions_need_admin",
    ),
    hole(
        "X2", "a user of kubectl names any code", "manifests/base/users.yaml",
        "authorizer.group('crewyard.dev').resource('deployments').namespace(request.namespace)"
        ".check('create').allowed()",
        "true",
        f"{USERS}::test_an_entrypoint_that_is_code_needs_the_permission_to_deploy",
        f"{USERS}::test_a_schedule_names_code_like_a_run",
    ),
    hole(
        "X2", "a user of kubectl names any Secret", "manifests/base/users.yaml",
        "variables.named.size() == 0 ||", "true ||",
        f"{USERS}::test_a_secret_needs_the_permission_to_read_it",
        f"{USERS}::test_what_was_named_stays_usable_but_goes_nowhere_else",
    ),
    hole(
        "X2", "the deploy scope drops the verification of commits", "api/v1/projects/view.py",
        '        yield "source.git"\n', "        return\n",
        "tests/unit/api/v1/views/test_project_view.py::test_only_an_admin_drops_the_verification_of_commits",
    ),
    hole(
        "X2", "the deploy scope may send a Secret elsewhere", "api/v1/projects/routes.py",
        "view.redirected_secrets(call.body, project.spec)", "()",
        f"{PROJECTS}::test_destination_of_a_secret_needs_admin",
    ),
    hole(
        "X2", "a permission is decided on a row", "api/v1/projects/spec_patch.py",
        "spec = change(Project(manifest))", "spec = change(row.as_object())",
        f"{PROJECTS}::test_a_permission_is_decided_on_the_object_not_on_an_older_row",
    ),
    hole(
        "X2", "a permission is decided on another version than the one patched",
        "api/v1/projects/spec_patch.py",
        '            "/metadata/resourceVersion": manifest["metadata"]["resourceVersion"],\n', "",
        f"{PROJECTS}::test_a_secret_is_never_named_next_to_an_address_that_another_call_set",
    ),
    hole(
        "X2", "the run scope may choose the entrypoint", "api/v1/runs/start.py",
        '    entrypoint.check_scope(call, deployment.project, body.get("entrypoint"))\n', "",
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
        'return claims if claims["aud"] in (audience, [audience]) else None', "return claims", WORKFLOWS,
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
        "isinstance(key, RSAPublicKey) and key.key_size not in RSA_KEY_BITS else", "False else",
        "tests/unit/api/auth/test_jwks.py",
    ),
    hole(
        "X2", "a pull request has the rights of the repository", "api/auth/workflows.py",
        "return ref is None or not ref.startswith(PULL_REQUEST_REFS)", "return True", WORKFLOWS,
    ),
    hole(
        "X2", "an unsigned token is accepted", "crds/pod_tokens.py",
        "if not any(valid):", "if False:",
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
        "if token.kind != kind or token.namespace not in",
        "if token.namespace not in", PODS,
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
        "X5", "an image that only a status names is signed", "controller/attestation/reconcile.py",
        "if proven_pod(self.config.token_keys, self.config.namespace, deployment) is None:", "if False:",
        "tests/cluster/controller/images/test_attestations.py::test_image_that_only_a_status_names_is_not_signed",
    ),
    hole(
        "X5", "an image without provenance runs", "controller/attestation/verify.py",
        "return provenance_problem(statements, image, project.name, self._config)", "return None",
        "tests/cluster/controller/images/test_attestations.py::test_run_of_an_unattested_image_says_so",
    ),
    hole(
        "X5", "a signature of any key is taken for the installation's", "controller/attestation/signing.py",
        "            signed.verify(list(self.accepted), 1)\n", "",
        "tests/registry/test_attestations.py::test_signature_of_another_key_counts_for_nothing",
    ),
    hole(
        "X5", "an image that only a status names is reused", "controller/deployment/reuse.py",
        " and is_reusable(other)\n", "\n", "tests/unit/controller/deployment/test_queue.py",
    ),
    hole(
        "X5", "a proof holds for another image", "controller/build_proof/proof.py",
        'PROVEN_FIELDS = ("image", ', "PROVEN_FIELDS = (", PROOFS,
    ),
    hole(
        "X5", "a build takes what a tag names", "build/assemble.py",
        "digest = settings.proven.dependencies.get(key)", 'digest = f"deps-{key}"',
        "tests/registry/test_build.py::test_images_that_only_a_tag_names_are_not_taken",
    ),
    hole(
        "X5", "a build takes the shared image that a tag names", "build/registry/shared_base.py",
        "digest = settings.proven.shared.get(key)", 'digest = f"deps-{key}"',
        "tests/registry/test_shared_base.py::test_shared_image_that_only_a_tag_names_is_not_taken",
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
