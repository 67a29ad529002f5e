"""The chart: equal to the kustomize manifests, and its values work."""

import json
import os
import subprocess
import tomllib

import pytest
import yaml

from api.config import parse as api_settings
from api.openapi.routes import OPERATIONS
from controller.config import parse as controller_settings
from egress import ca_bundle
from kube import errors
from tests.testbed.certificates import TestAuthority, store
from tests.unit.manifests import rendering

ONLY_KUSTOMIZE = {"Namespace /crewyard-system"}
"""`helm install --create-namespace` creates it: a release cannot contain its own namespace."""
ONLY_HELM = {"Secret crewyard-system/crewyard-tokens"}
"""With kustomize the user creates it."""
EVERYTHING = rendering.CHART / "ci" / "everything.yaml"
RULES = "PrometheusRule"
WHOLE = ("resources", "pods", "limits")
"""Values that are replaced as a whole."""
REPLICAS = rendering.CHART / "values-replicas.yaml"


@pytest.mark.parametrize(
    ("directory", "values"),
    [(rendering.BASE, ()), (rendering.OVERLAYS / "replicas", (REPLICAS,))],
    ids=["base", "replicas"],
)
def test_helm_and_kustomize_install_the_same(directory, values):
    ours, theirs = (
        # kustomize cannot tell a new installation from an upgraded one, so it keeps what an upgraded one has.
        rendering.comparable(rendering.helm('secretUse="any"', *values)),
        rendering.comparable(rendering.kustomize(directory)),
    )
    assert set(ours) - set(theirs) == ONLY_HELM
    assert set(theirs) - set(ours) == ONLY_KUSTOMIZE
    for name in sorted(set(ours) & set(theirs)):
        assert ours[name] == theirs[name], name


def test_helm_and_kustomize_install_the_same_tls(tmp_path):
    def resources(*parts):
        return [os.path.relpath(rendering.ROOT / "manifests" / part, tmp_path) for part in parts]

    overlay = {"resources": resources("base"), "components": resources("components/internal-tls")}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    theirs = rendering.comparable(rendering.kustomize(tmp_path))
    turned_on = ('secretUse="any"', 'internalTls.existingSecret="crewyard-internal-tls"')
    ours = rendering.comparable(rendering.helm(*turned_on))
    assert set(ours) ^ set(theirs) == ONLY_HELM | ONLY_KUSTOMIZE
    for name in sorted(set(ours) & set(theirs)):
        assert ours[name] == theirs[name], name


def test_pods_reach_the_tls_port_and_accept_the_authority_of_its_secret():
    values = ('internalTls.existingSecret="served"', "internalTls.plain=false", 'crews.teams=["team-a"]')
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    api = objects["Deployment crewyard-system/crewyard-api"]["spec"]["template"]["spec"]
    [mount] = [one for one in api["containers"][0]["volumeMounts"] if one["name"] == "internal-tls"]
    [volume] = [one for one in api["volumes"] if one["name"] == "internal-tls"]
    assert volume["secret"] == {"secretName": "served", "defaultMode": 0o440}
    settings = objects["ConfigMap crewyard-system/crewyard-config"]["data"]
    assert settings["CREWYARD_INTERNAL_TLS_DIR"] == mount["mountPath"]
    assert settings["CREWYARD_INTERNAL_TLS_URL"] == "https://crewyard-api.crewyard-system.svc:8443"
    assert settings["CREWYARD_INTERNAL_PLAIN"] == "off"
    ports = objects["Service crewyard-system/crewyard-api"]["spec"]["ports"]
    assert [port["port"] for port in ports] == [8080, 8443]
    controller = objects["Deployment crewyard-system/crewyard-controller"]["spec"]["template"]["spec"]
    assert mounts(controller) == {"internal-tls": "/etc/crewyard/internal-tls", "tmp": "/tmp"}
    assert volume in controller["volumes"] and controller["securityContext"]["fsGroup"] == 65532
    assert settings["CREWYARD_INTERNAL_CA_FILE"] == "/etc/crewyard/internal-tls/ca.crt"
    assert settings["CREWYARD_CONTROLLER_TLS_URL"] == "https://crewyard-controller.crewyard-system.svc:9443"
    ports = objects["Service crewyard-system/crewyard-controller"]["spec"]["ports"]
    assert [port["port"] for port in ports] == [9090, 9443]
    for policy, port in (("crewyard-facade-tls", 8443), ("crewyard-answers-tls", 9443)):
        for namespace in ("crews", "team-a"):
            rules = objects[f"NetworkPolicy {namespace}/{policy}"]["spec"]["egress"]
            assert rules[0]["ports"] == [{"protocol": "TCP", "port": port}]
    for policy in ("crewyard-api-tls", "crewyard-controller-tls"):
        [rule] = objects[f"NetworkPolicy crewyard-system/{policy}"]["spec"]["ingress"]
        assert rule["from"][0]["namespaceSelector"] == {"matchLabels": {"crewyard.dev/pods": "crews"}}


def test_authorities_of_a_configmap_are_mounted_in_the_controller():
    values = (
        'internalTls.existingSecret="served"', 'internalTls.caConfigMap="roots"', 'internalTls.caKey="a.crt"'
    )  # fmt: skip
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    controller = objects["Deployment crewyard-system/crewyard-controller"]["spec"]["template"]["spec"]
    assert {"name": "internal-ca", "configMap": {"name": "roots"}} in controller["volumes"]
    assert mounts(controller)["internal-ca"] == "/etc/crewyard/internal-ca"
    settings = objects["ConfigMap crewyard-system/crewyard-config"]["data"]
    assert settings["CREWYARD_INTERNAL_CA_FILE"] == "/etc/crewyard/internal-ca/a.crt"


def mounts(pod):
    return {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("internalTls.plain=false", r"internalTls\.existingSecret"),
        ('internalTls.caConfigMap="a"', r"internalTls\.existingSecret"),
    ],
)
def test_tls_without_a_certificate_is_refused(value, named):
    with pytest.raises(rendering.RenderError, match=named):
        rendering.helm(value)


def test_new_release_refuses_secrets_without_a_label():
    assert "CREWYARD_SECRET_USE: labelled" in yaml.safe_dump_all(rendering.helm())


def test_monitoring_objects_are_the_same():
    turned_on = ("monitoring.scrape=true", "monitoring.rules=true", "monitoring.dashboard=true")
    ours = rendering.comparable(rendering.helm(*turned_on))
    theirs = rendering.comparable(rendering.kustomize(rendering.ROOT / "manifests" / "monitoring"))
    assert len(theirs) >= 4
    assert {name: ours.get(name) for name in theirs} == theirs
    other = json.dumps(rendering.helm(*turned_on, release="second"))
    assert 'job=\\"second-crewyard-api' in other and 'job=\\"crewyard-api' not in other


def test_service_egress_is_the_same_and_takes_further_rules():
    rule = [{"to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}], "ports": [{"protocol": "TCP", "port": 5432}]}]
    turned_on = ("networkPolicies.service.enabled=true", f"networkPolicies.service.api={json.dumps(rule)}")
    ours = rendering.comparable(rendering.helm(*turned_on))
    theirs = rendering.comparable(rendering.kustomize(rendering.ROOT / "manifests" / "service-egress"))
    assert {name: ours.get(name) for name in theirs} == theirs
    [further] = (one for name, one in ours.items() if name.endswith("crewyard-api-egress"))
    assert further["spec"]["egress"] == rule
    assert further["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "api"
    assert set(theirs).isdisjoint(rendering.comparable(rendering.helm()))


def test_alerts_link_to_the_documentation_where_it_is_served():
    def links(*values):
        [rules] = (one for one in rendering.helm("monitoring.rules=true", *values) if one["kind"] == RULES)
        alerts = [rule for group in rules["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
        return [rule["annotations"]["runbook_url"] for rule in alerts]

    assert "docs/monitoring.md#crewyardapidown" in links()
    served = links('docsUrl="https://docs.example.com/crewyard"')
    assert served[0] == "https://docs.example.com/crewyard/monitoring.html#crewyardapidown"
    assert len(served) > 30 and all(one.startswith(served[0].partition("#")[0]) for one in served)
    with pytest.raises(rendering.RenderError, match="docsUrl"):
        links('docsUrl="https://docs.example.com/"')


def test_alerts_ignore_other_releases():
    rendered = json.dumps(rendering.helm("monitoring.rules=true", release="second"))
    assert f'absent(up{{job=\\"second-crewyard-api\\",namespace=\\"{rendering.NAMESPACE}\\"}}' in rendered


def test_the_default_image_is_the_charts_version():
    def images(*values):
        objects = {rendering.name(one): one for one in rendering.helm(*values)}
        config = objects["ConfigMap crewyard-system/crewyard-config"]["data"]
        pods = [one["spec"]["template"]["spec"] for one in objects.values() if one["kind"] == "Deployment"]
        return {config["CREWYARD_SERVICE_IMAGE"], *(pod["containers"][0]["image"] for pod in pods)}

    chart = yaml.safe_load((rendering.CHART / "Chart.yaml").read_text())
    project = tomllib.loads((rendering.ROOT / "pyproject.toml").read_text())["project"]
    assert chart["appVersion"] == project["version"]
    assert images() == {f"crewyard/service:{project['version']}"}
    assert images('image.tag="edge"') == {"crewyard/service:edge"}
    digest = f"sha256:{'a' * 64}"
    assert images('image.tag="edge"', f'image.digest="{digest}"') == {f"crewyard/service@{digest}"}


@pytest.mark.parametrize("kind", ["crewyard.dev/v1alpha1", "argoproj.io/v1alpha1"])
def test_rendering_without_a_cluster_requires_an_existing_token_key(kind):
    with pytest.raises(rendering.RenderError, match=r"tokens\.existingSecret is empty"):
        rendering.helm(cluster=(kind,))
    values = ('tokens.existingSecret="crewyard-tokens"', 'secretUse="labelled"')
    rendered = rendering.helm(*values, cluster=(kind,))
    assert rendered == rendering.helm(*values, cluster=(kind,))
    assert not [one for one in rendered if one["kind"] == "Secret"]


@pytest.mark.parametrize("kind", ["crewyard.dev/v1alpha1", "argoproj.io/v1alpha1"])
def test_rendering_without_a_cluster_requires_the_use_of_secrets(kind):
    """It would turn `any`, which a release has had from before labels, into `labelled`."""
    tokens = 'tokens.existingSecret="crewyard-tokens"'
    with pytest.raises(rendering.RenderError, match="secretUse is empty"):
        rendering.helm(tokens, cluster=(kind,))
    for value in ('secretUse="any"', 'settings.CREWYARD_SECRET_USE="any"'):
        rendered = yaml.safe_dump_all(rendering.helm(tokens, value, cluster=(kind,)))
        assert "CREWYARD_SECRET_USE: any" in rendered


def test_pods_restart_with_a_new_token_key():
    def sums():
        pods = [one["spec"]["template"] for one in rendering.helm() if one["kind"] == "Deployment"]
        return {pod["metadata"]["annotations"]["checksum/secrets"] for pod in pods}

    first, second = sums(), sums()
    assert len(first) == len(second) == 1 and first != second


def test_service_account_annotations_and_pod_labels():
    role = "arn:aws:iam::123456789012:role/crewyard"
    values = (
        f'api.serviceAccount.annotations={{"eks.amazonaws.com/role-arn": "{role}"}}',
        'api.podLabels={"azure.workload.identity/use": "true", "app.kubernetes.io/component": "mine"}',
        'controller.serviceAccount.annotations={"example.com/owner": "platform"}',
    )
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    accounts = {
        name: objects[f"ServiceAccount crewyard-system/crewyard-{name}"]["metadata"]["annotations"]
        for name in ("api", "controller")
    }
    assert accounts["api"] == {"eks.amazonaws.com/role-arn": role}
    assert accounts["controller"] == {"example.com/owner": "platform"}
    api = objects["Deployment crewyard-system/crewyard-api"]["spec"]["template"]["metadata"]["labels"]
    # The labels that the Service selects cannot be overridden.
    assert api["azure.workload.identity/use"] == "true" and api["app.kubernetes.io/component"] == "api"


def test_the_crds_are_those_of_the_repository():
    crds = {
        one["metadata"]["name"]: one for one in rendering.helm() if one["kind"] == "CustomResourceDefinition"
    }
    assert len(crds) == 3
    for kind in ("project", "deployment", "run"):
        truth = yaml.safe_load((rendering.ROOT / "crds" / f"{kind}.yaml").read_text())
        rendered = crds[truth["metadata"]["name"]]
        assert rendered["spec"] == truth["spec"]
        assert rendered["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_a_packaged_chart_renders_the_same(tmp_path):
    ours = rendering.helm('tokens.existingSecret="crewyard-tokens"')
    argv = ["helm", "package", str(rendering.CHART), "--destination", str(tmp_path)]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
    [packed] = tmp_path.iterdir()
    assert rendering.helm('tokens.existingSecret="crewyard-tokens"', chart=packed) == ours


def test_only_data_and_isolation_of_the_crews_are_kept_at_uninstall():
    values = (
        'crews.teams=["team-a"]',
        'internalTls.existingSecret="served"',
        "networkPolicies.service.enabled=true",
        'networkPolicies.runs=[{"to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}]}]',
    )
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    kept_objects = {
        name
        for name, one in objects.items()
        if "helm.sh/resource-policy" in (one["metadata"].get("annotations") or {})
    }
    policies = {
        name for name in objects if name.startswith(("NetworkPolicy crews/", "NetworkPolicy team-a/"))
    }
    # Further connections end with the release: a run that still goes on reaches less without them, not more.
    further = {"NetworkPolicy crews/crewyard-runs", "NetworkPolicy team-a/crewyard-runs"}
    assert further < policies and "NetworkPolicy team-a/crewyard-closed" in policies
    assert {name for name in kept_objects if not name.startswith("CustomResource")} == {
        "Namespace /crews",
        "Namespace /team-a",
        "PersistentVolumeClaim crewyard-system/crewyard-data",
        "Secret crewyard-system/crewyard-tokens",
        *(policies - further),
    }


def test_releases_with_different_names_share_no_object():
    values = ("crds.install=false", 'crews.namespace="others"')
    other = {rendering.name(one) for one in rendering.helm(*values, release="second")}
    assert other & {rendering.name(one) for one in rendering.helm()} == set()
    assert "ClusterRole /second-crewyard-api" in other


@pytest.mark.parametrize(
    ("values", "release"),
    [((), "crewyard"), ((), "prod"), ((), "a" * 40), (('fullnameOverride="acme"',), "prod")],
)
def test_denials_by_the_policies_of_any_release_are_final(values, release):
    objects = rendering.helm(*values, release=release)
    bindings = [one for one in objects if one["kind"] == "ValidatingAdmissionPolicyBinding"]
    policies = {one["metadata"]["name"] for one in objects if one["kind"] == "ValidatingAdmissionPolicy"}
    assert {one["spec"]["policyName"] for one in bindings} == policies and len(policies) == 5
    for one in bindings:
        policy, binding = one["spec"]["policyName"], one["metadata"]["name"]
        message = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: no"
        denial = errors.from_status(422, {"reason": "Invalid", "message": message})
        assert errors.is_final(denial), policy


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["api.replicas=2"], ["api.replicas is 2", "database.existingSecret"]),
        (["api.replicas=2", 'database.existingSecret="db"'], ["api.replicas is 2", "bucket.url"]),
        (["api.replicas=0"], ["/api/replicas"]),
        (['api.replica="2"'], ["/api", "replica"]),
        (['image.digest="latest"'], ["/image/digest"]),
        (['registry.prefix="https://registry.example.com"'], ["/registry/prefix"]),
        (['registry.insecure="no"'], ["/registry/insecure"]),
        (['publicUrl="crewyard.example.com"'], ["/publicUrl"]),
        (['network.deny=["nonsense"]'], ["/network/deny/0"]),
        (['plans={"free": {"requests": 1}}'], ["/plans/free"]),
        (['logLevel="loud"'], ["/logLevel"]),
        (['persistence.size="much"'], ["/persistence/size"]),
        (['bucket.url="bucket"'], ["/bucket/url"]),
        (["bucket.direct=true"], ["bucket.publicUrl"]),
        (['ca.configMap="a"', 'ca.secret="b"'], ["ca.configMap and ca.secret"]),
        (
            ['network.runEgress=[{"namespace": "models"}]', "networkPolicies.enabled=false"],
            ["network.runEgress", "would block all others"],
        ),
        (['network.runEgress=[{"namespace": "models", "port": 80}]'], ["/network/runEgress/0", "port"]),
        (["ingress.enabled=true"], ["ingress.host"]),
        (["gateway.enabled=true"], ["gateway.parentRefs"]),
        (['crews.namespace="crewyard-system"'], ["crews.namespace", "the release's own"]),
        (['crews.namespace="No_Name"'], ["/crews/namespace"]),
        (['crews.teams=["crews"]'], ["crews.teams", "name others only"]),
        (['crews.teams=["team-a", "crewyard-system"]'], ["crews.teams", "name others only"]),
        (['crews.teams=["No_Name"]'], ["/crews/teams/0"]),
        (['settings={"OTHER": "x"}'], ["/settings", "OTHER"]),
        (['settings={"CREWYARD_TOKEN_KEY": "0123456789abcdef"}'], ["tokens.existingSecret"]),
        (['settings={"CREWYARD_DATABASE_URL": "postgresql://"}'], ["database.existingSecret"]),
        (['settings={"CREWYARD_RATE_LIMIT_URL": "redis://:x@h"}'], ["rateLimit.existingSecret"]),
        (['settings={"CREWYARD_OTLP_HEADERS": "a=b"}'], ["telemetry.otlp.existingSecret"]),
        (['settings={"CREWYARD_ADMIN_KEYS": "[]"}'], ["adminKeys.existingSecret"]),
        (['settings={"AWS_SECRET_ACCESS_KEY": "x"}'], ["bucket.existingSecret"]),
        (['settings={"AWS_SESSION_TOKEN": "x"}'], ["bucket.existingSecret"]),
        (['pods={"run": {"resources": {"claims": []}}}'], ["/pods/run/resources", "claims"]),
        (['pods={"plans": {"pro": {"resources": {"claims": []}}}}'], ["/pods/plans/pro/resources", "claims"]),
        (
            ['builds.baseImages={"3.11": null, "3.12": null, "3.13": null, "3.14": null}'],
            ["/builds/baseImages"],
        ),
        (['pods={"run": {"nodeSelektor": {}}}'], ["/pods/run", "nodeSelektor"]),
        (['pods={"run": {"resources": {"limits": {"nvidia.com/gpu": true}}}}'], ["nvidia.com"]),
        (['proxy.http="http://user:password@proxy.example.com:3128"'], ["/proxy/http"]),
        (['colour="red"'], ["colour"]),
    ],
)  # fmt: skip
def test_wrong_values_are_refused_by_name(values, words):
    with pytest.raises(rendering.RenderError) as refused:
        rendering.helm(*values)
    message = str(refused.value)
    assert all(word in message or word.lstrip("/").replace("/", ".") in message for word in words), message


def test_a_base_image_of_the_default_can_be_removed():
    rendered = rendering.helm('builds.baseImages={"3.11": "mirror.example.com/python:3.11", "3.12": null}')
    (settings,) = [item["data"] for item in rendered if "CREWYARD_BASE_IMAGES" in (item.get("data") or {})]
    bases = json.loads(settings["CREWYARD_BASE_IMAGES"])
    assert list(bases) == ["3.11", "3.13", "3.14"] and bases["3.11"] == "mirror.example.com/python:3.11"


def test_every_value_is_described_and_has_a_default():
    values = yaml.safe_load((rendering.CHART / "values.yaml").read_text())
    schema = json.loads((rendering.CHART / "values.schema.json").read_text())
    undescribed, unknown = [], []

    def walk(part, values_part, path):
        for name, inner in part.get("properties", {}).items():
            if name == "global":
                continue
            if "description" not in inner and "properties" not in inner:
                undescribed.append(f"{path}{name}")
            if name not in values_part:
                unknown.append(f"{path}{name}")
            elif "properties" in inner and name not in WHOLE:
                walk(inner, values_part[name], f"{path}{name}.")
        assert part.get("additionalProperties") is False, path
        assert set(values_part) <= set(part["properties"]), path

    walk(schema, values, "")
    assert (undescribed, unknown) == ([], [])


def test_everything_enabled():
    objects = {rendering.name(one): one for one in rendering.helm(EVERYTHING)}
    api = objects["Deployment crewyard-system/crewyard-api"]["spec"]["template"]["spec"]
    environment = {entry["name"]: entry.get("value") for entry in api["containers"][0]["env"]}
    assert environment["HTTPS_PROXY"] == "http://proxy.example.com:3128"
    assert "$(KUBERNETES_SERVICE_HOST)" in environment["NO_PROXY"] and ".svc" in environment["NO_PROXY"]
    assert environment["SSL_CERT_FILE"] == str(ca_bundle.BUNDLE_PATH)
    assert api["containers"][0]["args"] == ["python3", "-m", "egress.ca_bundle", "python3", "-m", "api"]
    assert api["nodeSelector"] == {"pool": "services"}
    config = objects["ConfigMap crewyard-system/crewyard-config"]["data"]
    assert config["CREWYARD_PUBLIC_URL"] == "https://crewyard.example.com"
    assert (
        json.loads(config["CREWYARD_PODS"])["plans"]["enterprise"]["resources"]["limits"]["nvidia.com/gpu"]
        == 1
    )
    ingress = objects["Ingress crewyard-system/crewyard-api"]
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-buffering"] == "off"
    assert int(ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-read-timeout"]) >= 3600
    route = objects["HTTPRoute crewyard-system/crewyard-api"]
    assert route["spec"]["rules"][0]["timeouts"] == {"request": "0s", "backendRequest": "0s"}


def test_each_team_gets_what_the_namespace_of_the_crews_has():
    rules = 'networkPolicies={"runs": [{"ports": [{"port": 443}]}]}'
    before = rendering.comparable(rendering.helm(rules, 'tokens={"existingSecret": "key"}'))
    teams = ('crews.teams=["team-a", "team-b"]', rules, 'tokens={"existingSecret": "key"}')
    after = rendering.comparable(rendering.helm(*teams))
    own = {name for name in before if " crews/" in name}
    kinds = {name.split(" ")[0] for name in own}
    assert {"Role", "RoleBinding", "NetworkPolicy", "LimitRange", "ResourceQuota"} <= kinds
    for team in ("team-a", "team-b"):
        for name in own:
            of_team = after[name.replace(" crews/", f" {team}/")]
            assert json.dumps(of_team).replace(team, "crews") == json.dumps(before[name]), name
        labels = after[f"Namespace /{team}"]["metadata"]["labels"]
        assert (labels["crewyard.dev/pods"], labels["crewyard.dev/crews"]) == ("crews", "true")
    changed = {name for name in before if after.get(name) != before[name]}
    restarted = {"Deployment crewyard-system/crewyard-api", "Deployment crewyard-system/crewyard-controller"}
    answers = "NetworkPolicy crewyard-system/crewyard-controller"
    assert changed - restarted == {"ConfigMap crewyard-system/crewyard-config", answers}
    names = [
        source["namespaceSelector"]["matchLabels"].get("kubernetes.io/metadata.name")
        for source in after[answers]["spec"]["ingress"][0]["from"]
    ]
    assert names == ["crews", None, "team-a", "team-b"]
    config = after["ConfigMap crewyard-system/crewyard-config"]["data"]
    assert config["CREWYARD_NAMESPACES"] == "team-a,team-b"
    assert api_settings({"CREWYARD_TOKEN_KEY": "x" * 16, **config}).namespaces == ("team-a", "team-b")


def test_values_override_the_charts_entries():
    # A duplicate key is not valid YAML: kustomize and tools based on it reject it.
    values = (
        'settings={"CREWYARD_LOG_LEVEL": "warning", "CREWYARD_SEAL_AFTER": "60", "AWS_S3_FORCE": "on"}',
        'api.podAnnotations={"prometheus.io/scrape": "false", "example.com/owner": "platform"}',
        'controller.podAnnotations={"prometheus.io/port": "1"}',
        'crews.labels={"pod-security.kubernetes.io/warn": "baseline", "team": "research"}',
    )
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    config = objects["ConfigMap crewyard-system/crewyard-config"]["data"]
    assert (config["CREWYARD_LOG_LEVEL"], config["CREWYARD_SEAL_AFTER"]) == ("warning", "60")
    pods = {
        name: objects[f"Deployment crewyard-system/crewyard-{name}"]["spec"]["template"]["metadata"]
        for name in ("api", "controller")
    }
    assert pods["api"]["annotations"]["prometheus.io/scrape"] == "false"
    assert pods["api"]["annotations"]["prometheus.io/port"] == "8080"
    assert pods["api"]["annotations"]["example.com/owner"] == "platform"
    assert pods["controller"]["annotations"]["prometheus.io/port"] == "1"
    labels = objects["Namespace /crews"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/warn"] == "baseline" and labels["team"] == "research"


def test_the_service_accepts_the_settings(tmp_path):
    authority = TestAuthority()
    store(tmp_path, authority.issue("crewyard-api.crewyard-system.svc"))
    (tmp_path / "ca.crt").write_text(authority.text)
    for values in ((), (EVERYTHING,), (REPLICAS,)):
        objects = {rendering.name(one): one for one in rendering.helm(*values)}
        config = objects["ConfigMap crewyard-system/crewyard-config"]["data"]
        environment = {**config, "CREWYARD_TOKEN_KEY": "k" * 32}
        if values == (EVERYTHING,):
            environment |= {
                "CREWYARD_INTERNAL_TLS_DIR": str(tmp_path),
                "CREWYARD_INTERNAL_CA_FILE": str(tmp_path / "ca.crt"),
            }
        settings = controller_settings(environment)
        assert settings.namespace == "crews"
        assert bool(settings.egress.proxies) == bool(settings.placements.plans) == (values == (EVERYTHING,))
        api_settings({**environment, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"})


@pytest.mark.parametrize(("values", "expected"), [((), True), (("builds.pullAhead=false",), False)])
def test_images_are_pulled_ahead_unless_it_is_off(values, expected):
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    config = objects["ConfigMap crewyard-system/crewyard-config"]["data"]
    assert controller_settings({**config, "CREWYARD_TOKEN_KEY": "k" * 32}).pull_ahead is expected


@pytest.mark.parametrize(("values", "expected"), [((), True), (("builds.installInBase=false",), False)])
def test_base_images_install_dependencies_unless_it_is_off(values, expected):
    objects = {rendering.name(one): one for one in rendering.helm(*values)}
    config = objects["ConfigMap crewyard-system/crewyard-config"]["data"]
    assert controller_settings({**config, "CREWYARD_TOKEN_KEY": "k" * 32}).install_in_base is expected


def test_only_public_paths_are_routed_from_outside():
    """Metrics are of all projects, and the calls of pods are for pods."""
    everything = rendering.comparable(rendering.helm(EVERYTHING))
    [rule] = everything["Ingress crewyard-system/crewyard-api"]["spec"]["rules"]
    ingress = [(one["pathType"], one["path"]) for one in rule["http"]["paths"]]
    [rule] = everything["HTTPRoute crewyard-system/crewyard-api"]["spec"]["rules"]
    route = [(one["path"]["type"], one["path"]["value"]) for one in rule["matches"]]

    def routed(paths, asked):
        """Return whether a path reaches the API server, by Kubernetes' rule: whole parts of the path."""
        return any(
            asked == path or (kind != "Exact" and asked.startswith(f"{path.rstrip('/')}/"))
            for kind, path in paths
        )

    for operation in OPERATIONS:
        for paths in (ingress, route):
            assert routed(paths, operation.path) is (operation.path != "/metrics"), operation.path
    for paths in (ingress, route):
        assert all(routed(paths, path) for path in ("/", "/console", "/console/app.js", "/v1/runs"))
        assert not any(routed(paths, path) for path in ("/internal/v1/runs/run-a/claim", "/metrics", "/x"))
