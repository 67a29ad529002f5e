"""Only packages of missing programs are installed."""

from dev.packages import CLUSTER_PACKAGES, TEST_PACKAGES, is_present, missing, search_path


def test_nothing_is_missing_where_all_is_present() -> None:
    assert missing(CLUSTER_PACKAGES, lambda need: True) == []


def test_a_program_from_elsewhere_needs_no_package() -> None:
    assert missing(CLUSTER_PACKAGES, lambda need: need != "dnsmasq") == ["dnsmasq-base"]
    assert "containerd" not in missing(CLUSTER_PACKAGES, lambda need: need == "containerd")


def test_all_packages_are_named_once() -> None:
    for needs in (CLUSTER_PACKAGES, TEST_PACKAGES):
        assert missing(needs, lambda need: False) == sorted(set(needs.values()))


def test_packages_of_tests_are_not_installed_by_up() -> None:
    assert not set(CLUSTER_PACKAGES.values()) & set(TEST_PACKAGES.values())


def test_files_and_programs_are_both_found() -> None:
    assert is_present("/etc/os-release")
    assert is_present("sh")
    assert not is_present("/nowhere/at/all")
    assert not is_present("no-such-program-anywhere")


def test_the_path_includes_sbin_directories() -> None:
    path = search_path("/usr/local/bin:/usr/bin:/bin")
    assert path.split(":")[:3] == ["/usr/local/bin", "/usr/bin", "/bin"]
    assert {"/usr/sbin", "/sbin", "/usr/local/go/bin"} <= set(path.split(":"))
    assert search_path(path) == path
