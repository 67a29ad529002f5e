"""Lets the apiserver read logs and open shells at the kubelet.

kubeadm's certificate for that carries no right of its own; the rest of
kubeadm, which we do not run, would bind one.
"""

from dev.cluster.kube_client import HttpKubeApi

_PATH = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_NAME = "crewyard:kube-apiserver-to-kubelet"

BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": _NAME},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "system:kubelet-api-admin",
    },
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kube-apiserver-kubelet-client"}
    ],
}


def ensure(kube: HttpKubeApi) -> None:
    """Makes the binding if it is not there."""
    if kube.get(f"{_PATH}/{_NAME}") is None:
        kube.create(_PATH, BINDING)
