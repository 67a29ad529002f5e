"""RBAC binding that lets the apiserver read logs and open shells through the kubelet.

kubeadm's certificate for it grants no permission; a part of kubeadm that this cluster does not run would
create the binding.
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
    """Create the binding if it does not exist."""
    if kube.get(f"{_PATH}/{_NAME}") is None:
        kube.create(_PATH, BINDING)
