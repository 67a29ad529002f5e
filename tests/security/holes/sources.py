"""Holes in what is fetched and unpacked: archives (X3), addresses (X4)."""

from tests.security.holes.hole import Hole, hole

ARCHIVE = "tests/unit/build/source/test_archive.py"
FORBIDDEN = "tests/unit/egress/test_forbidden.py"
ADDRESSES = "tests/unit/egress/test_addresses.py"
GATE = "tests/unit/egress/relay/test_http_relay.py"
FETCH = "tests/unit/api/build_context/test_fetch.py"

SIGNED = "tests/registry/sources/test_signed_commits.py"

HOLES: tuple[Hole, ...] = (
    hole(
        "X3", "an unsigned commit is built", "build/source/verify_commit.py",
        '        raise _refused(commit, "is not signed")\n', '        return "a signer"\n',
        f"{SIGNED}::test_other_ssh_signatures_are_refused",
    ),
    hole(
        "X3", "any key of OpenPGP signs", "build/source/verify_commit.py",
        "return good if valid else None", 'return good or "a signer"', f"{SIGNED}::test_openpgp_signatures",
    ),
    hole(
        "X3", "an upload needs no signature", "build/source/fetch.py",
        "settings.signers is not None and not isinstance", "False and not isinstance",
        f"{SIGNED}::test_upload_is_refused_where_commits_must_be_signed",
    ),
    hole("X3", "names climb", "plan/source.py", 'if ".." in parts:', "if False:", ARCHIVE),
    hole(
        "X3", "names are absolute", "plan/source.py",
        'if path.startswith("/") or "\\\\" in path or path[1:2] == ":":', "if False:", ARCHIVE,
    ),
    hole(
        "X3", "links are files", "build/source/archive.py",
        'elif member.kind == "file":', "elif member.kind:", ARCHIVE,
    ),
    hole(
        "X3", "entries are not counted", "build/source/tree.py",
        "self._entry_count += 1", "self._entry_count += 0", ARCHIVE,
    ),
    hole(
        "X3", "a tar unpacks without end", "build/source/archive.py",
        "if self._bytes_read > self._max_bytes:", "if False:", ARCHIVE,
    ),
    hole(
        "X3", "a zip unpacks without end", "build/source/archive.py",
        "if sum(member.file_size for member in archive.infolist()) > size * limits.ratio"
        " + _RATIO_GRACE_BYTES:",
        "if False:", ARCHIVE,
    ),
    hole(
        "X3", "zip entries share their bytes", "build/source/archive.py",
        "if member.header_offset < end:", "if False:", ARCHIVE,
    ),
    hole(
        "X3", "the directory of a zip has any length", "build/source/archive.py",
        "if length > limits.entries * _DIRECTORY_BYTES_PER_ENTRY:", "if False:", ARCHIVE,
    ),
    hole(
        "X3", "gzip members without end", "build/source/archive.py",
        "if self._count > _MAX_GZIP_MEMBERS:", "if False:", ARCHIVE,
    ),
    hole(
        "X3", "a source is held in memory", "build/source/tree.py",
        "_IN_MEMORY_BYTES = 64 << 20", "_IN_MEMORY_BYTES = 1 << 40",
        "tests/unit/build/source/test_bounded.py",
    ),
    hole(
        "X4", "an address within an IPv6 address is not looked at", "egress/addresses.py",
        "for candidate in (address, *_embedded(address)):", "for candidate in (address,):",
        ADDRESSES, FORBIDDEN,
    ),
    hole(
        "X4", "private networks are open", "egress/addresses.py",
        "if _within(address, _PRIVATE_NETWORKS):", "if False:", ADDRESSES,
    ),
    hole(
        "X4", "an allowed address is allowed with all its ports", "egress/addresses.py",
        "and self.first_port <= port <= self.last_port", "", ADDRESSES,
    ),
    hole(
        "X4", "loopback is an address like others", "egress/addresses.py",
        "if address.is_loopback:", "if False:", ADDRESSES, FORBIDDEN,
    ),
    hole(
        "X4", "link-local is an address like others", "egress/addresses.py",
        "if address.is_link_local:", "if False:", ADDRESSES, FORBIDDEN,
    ),
    hole(
        "X4", "the metadata of clouds outside of link-local is not known", "egress/addresses.py",
        "_networks([*deny, *_METADATA_ADDRESSES])", "_networks(deny)", ADDRESSES, FORBIDDEN,
    ),
    hole(
        "X4", "one good address lets a name in", "egress/addresses.py",
        "    for text in addresses:\n", "    for text in addresses[:1]:\n", FORBIDDEN, FETCH,
    ),
    hole(
        "X4", "git's redirects are passed on as they are", "egress/relay/http_messages.py",
        'if name.strip().lower() == "location":', "if False:", FORBIDDEN, GATE,
    ),
    hole(
        "X4", "git connects to what a name means a moment later", "egress/relay/relay.py",
        "stream = socket.create_connection((address, port), self._connect_seconds())",
        "stream = socket.create_connection((self.resolve(host, port)[0], port), self._connect_seconds())",
        FORBIDDEN,
    ),
    hole(
        "X4", "credentials follow a redirect", "egress/relay/http_messages.py",
        ' if not line.lower().startswith(b"authorization:")', "", FORBIDDEN,
    ),
    hole(
        "X4", "an archive is fetched wherever redirects lead", "api/build_context/fetch.py",
        "allow_redirects=False)", "allow_redirects=True)", FETCH,
    ),
    hole(
        "X4", "an archive's name is looked up again", "egress/pinned_session.py",
        "resolver=PinnedResolver(host, addresses), use_dns_cache=False", "use_dns_cache=False", FETCH,
    ),
    hole(
        "X4", "an archive comes from any host", "api/build_context/url.py",
        "if hosts is not None and not url.is_allowed(hosts):", "if False:",
        "tests/unit/api/build_context/test_url.py",
    ),
    hole(
        "X4", "an archive comes from any address", "api/build_context/fetch.py",
        "await asyncio.to_thread(resolve_allowed, url.host, url.port, rules, resolve)",
        "await asyncio.to_thread(resolve, url.host, url.port)", FETCH,
    ),
    hole(
        "X4", "an archive comes through the environment's proxy", "egress/pinned_session.py",
        "trust_env=False", "trust_env=True", FETCH,
    ),
    hole(
        "X5", "a source's address carries the build's token", "controller/pods/env.py",
        '.replace("$", "\\\\u0024")', "", "tests/unit/controller/deployment/test_expansion.py",
    ),
    hole(
        "X5", "Kaniko has what the others have", "controller/deployment/pod.py",
        '**({"env": wanted} if (wanted := config.egress.kaniko_env(WORKSPACE)) else {}),',
        '"env": push_secret.credential(project, config),',
        "tests/unit/controller/deployment/test_pod.py",
    ),
    hole(
        "X5", "an installation has what the others have", "controller/deployment/pod.py",
        '**({"env": wanted} if (wanted := config.egress.install_env()) else {}),',
        '"env": push_secret.credential(project, config),',
        "tests/unit/controller/deployment/test_pod.py",
    ),
    hole(
        "X5", "a build chooses the image that installs", "controller/deployment/decide.py",
        "return needs if needs.base_digest in proven else by_kaniko", "return needs",
        "tests/unit/controller/deployment/test_decide.py",
    ),
    hole(
        "X5", "a written base image is shared", "controller/build_proof/proof.py",
        "[*of, *proven, *base]", "[*of, *proven]",
        "tests/unit/controller/build_proof/test_proof.py",
    ),
    hole(
        "X5", "git's credential goes to any host", "controller/deployment/build_pod_env.py",
        'return own_git(project) if wanted.get("url") == (project.git or {}).get("url") else []',
        "return own_git(project)",
        "tests/unit/controller/deployment/test_pod.py",
    ),
    hole(
        "X6", "a crew's pod has a token of the apiserver", "controller/run/pod.py",
        '"automountServiceAccountToken": False', '"automountServiceAccountToken": True',
        "tests/unit/controller/run/test_pod.py",
    ),
    hole(
        "X6", "a crew's pod may become more", "controller/pods/security.py",
        '"allowPrivilegeEscalation": False,\n        "capabilities": {"drop": ["ALL"]},\n', "",
        "tests/unit/controller/run/test_pod.py",
    ),
    hole(
        "X6", "the run's token is in the crew's environment", "runner/pid1/settings.py",
        "ours = {name: environ.pop(name) for", "ours = {name: environ[name] for",
        "tests/unit/runner/test_pure.py::test_settings_are_removed_from_the_environment",
    ),
    hole(
        "X4", "a Secret's name leads to another address", "crds/kinds.py",
        'quote(name, safe=":") if name.strip(".") else f"{name}-"', "name", "tests/unit/crds/test_kinds.py",
    ),
)  # fmt: skip
