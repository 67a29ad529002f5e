"""Removal of the dev cluster's chains and of the rules that jump to them."""

from dev.net import firewall
from dev.net.firewall import removal_commands

NAT = """-P PREROUTING ACCEPT
-N CREWYARD-MASQUERADE
-N DOCKER
-N KUBE-SERVICES
-N KUBE-SVC-ABC
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -j CREWYARD-MASQUERADE
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
-A KUBE-SERVICES -d 10.214.0.1/32 -j KUBE-SVC-ABC
""".splitlines()


def test_jumps_to_our_chains_are_deleted_one_by_one() -> None:
    jumps, _ = removal_commands(NAT)
    assert jumps == [
        [
            "-D",
            "PREROUTING",
            "-m",
            "comment",
            "--comment",
            "kubernetes service portals",
            "-j",
            "KUBE-SERVICES",
        ],
        ["-D", "POSTROUTING", "-j", "CREWYARD-MASQUERADE"],
    ]


def test_only_our_chains_are_dropped() -> None:
    _, chains = removal_commands(NAT)
    assert chains == ["CREWYARD-MASQUERADE", "KUBE-SERVICES", "KUBE-SVC-ABC"]


def test_a_foreign_table_stays_unchanged() -> None:
    assert removal_commands(
        ["-P INPUT ACCEPT", "-N DOCKER", "-A INPUT -j DOCKER", '-A INPUT -m comment --comment "KUBE-X -j"']
    ) == (
        [],
        [],
    )


def test_without_iptables_there_are_no_rules() -> None:
    assert firewall._rules("no-such-program-anywhere", "nat") == []
