"""Attempts to become more than one is, and to reach the kernel by its rarer doors."""

import ctypes
import os
import socket
import struct

from probe import Stopped, in_child, probe, syscall

_libc = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWUSER, _NEWNET, _NEWPID = 0x20000, 0x10000000, 0x40000000, 0x20000000


def _checked(result):
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


@probe
def become_root(inputs):
    return in_child(lambda: os.setresuid(0, 0, 0) or f"user {os.getuid()}")


@probe
def become_another_user(inputs):
    return in_child(lambda: os.setresuid(1000, 1000, 1000) or f"user {os.getuid()}")


@probe
def become_roots_group(inputs):
    return in_child(lambda: os.setresgid(0, 0, 0) or f"group {os.getgid()}")


@probe
def take_groups(inputs):
    return in_child(lambda: os.setgroups([0]) or f"groups {os.getgroups()}")


@probe
def have_capabilities(inputs):
    with open("/proc/self/status") as file:
        lines = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    held = {name: int(lines[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")}
    if not any(held.values()):
        raise Stopped("all five sets are empty")
    return str(held)


@probe
def without_seccomp(inputs):
    with open("/proc/self/status") as file:
        mode = next(line.split()[1] for line in file if line.startswith("Seccomp:"))
    if mode == "2":
        raise Stopped("a filter is on")
    return f"mode {mode}"


@probe
def mount_a_file_system(inputs):
    return in_child(lambda: _checked(_libc.mount(b"none", b"/mnt", b"tmpfs", 0, None)) or "mounted tmpfs")


@probe
def mount_proc(inputs):
    return in_child(lambda: _checked(_libc.mount(b"proc", b"/mnt", b"proc", 0, None)) or "mounted proc")


@probe
def bind_a_directory(inputs):
    return in_child(lambda: _checked(_libc.mount(b"/proc", b"/mnt", None, 4096, None)) or "bound /proc")


@probe
def unmount_a_mask(inputs):
    return in_child(lambda: _checked(_libc.umount2(b"/proc/kcore", 2)) or "took the mask away")


@probe
def open_a_mount(inputs):
    return in_child(lambda: syscall(428, -100, ctypes.c_char_p(b"/"), 1))  # open_tree, cloned


@probe
def change_root(inputs):
    return in_child(lambda: os.chroot("/tmp") or "changed root")


@probe
def own_user_namespace(inputs):
    return in_child(lambda: _checked(_libc.unshare(_NEWUSER)) or "a user namespace")


@probe
def own_mount_namespace(inputs):
    return in_child(lambda: _checked(_libc.unshare(_NEWNS)) or "a mount namespace")


@probe
def own_network_namespace(inputs):
    return in_child(lambda: _checked(_libc.unshare(_NEWNET)) or "a network namespace")


@probe
def own_process_namespace(inputs):
    return in_child(lambda: _checked(_libc.unshare(_NEWPID)) or "a process namespace")


@probe
def clone_into_namespaces(inputs):
    # clone3 takes a structure that no filter can look into.
    arguments = struct.pack("=11Q", _NEWUSER | _NEWNS, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)

    def work():
        pid = syscall(435, ctypes.c_char_p(arguments), len(arguments))
        if pid == 0:
            os._exit(0)
        return "cloned"

    return in_child(work)


@probe
def join_namespaces_of_process_1(inputs):
    def work():
        with open("/proc/1/ns/mnt") as file:
            return _checked(_libc.setns(file.fileno(), _NEWNS)) or "joined"

    return in_child(work)


@probe
def raw_socket(inputs):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return "a raw socket"


@probe
def packet_socket(inputs):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)):
        return "a packet socket"


@probe
def change_the_network(inputs):
    # RTM_NEWLINK: takes the loopback down and up again.
    body = struct.pack("=BBHiII", 0, 0, 0, 1, 0, 0)
    message = struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(message)
        answer = link.recv(4096)
    (code,) = struct.unpack("=i", answer[16:20])
    if code:
        raise OSError(-code, os.strerror(-code))
    return "changed an interface"


@probe
def packet_filter(inputs):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as filter_socket:
        filter_socket.getsockopt(socket.IPPROTO_IP, 64, 84)
        return "read the packet filter"


@probe
def keyring(inputs):
    return syscall(248, ctypes.c_char_p(b"user"), ctypes.c_char_p(b"probe"), ctypes.c_char_p(b"x"), 1, -3)


@probe
def keyring_by_keyctl(inputs):
    return syscall(250, 0, -3, 1)


@probe
def bpf(inputs):
    attributes = ctypes.create_string_buffer(struct.pack("=IIII", 2, 4, 4, 1), 120)
    return syscall(321, 0, attributes, 120)


@probe
def perf_events(inputs):
    attributes = ctypes.create_string_buffer(struct.pack("=IIQ", 1, 112, 0), 112)
    return syscall(298, attributes, 0, -1, -1, 0)


@probe
def io_uring(inputs):
    return syscall(425, 4, ctypes.create_string_buffer(120))


@probe
def userfaultfd(inputs):
    return syscall(323, 0)


@probe
def load_a_module(inputs):
    code = None
    try:
        return syscall(175, ctypes.c_char_p(b"x"), 1, ctypes.c_char_p(b""))
    except OSError as error:
        code = error.errno
        if code in (8, 22):
            return "the kernel looked at the module"
        raise


@probe
def set_the_clock(inputs):
    now = struct.pack("=qq", 1, 0)
    if inputs.get("control"):
        raise LookupError("not tried where it would work")
    return syscall(227, 0, ctypes.c_char_p(now))


@probe
def set_the_host_name(inputs):
    name = os.uname().nodename.encode()
    return _checked(_libc.sethostname(name, len(name))) or "set"


@probe
def restart_the_machine(inputs):
    if inputs.get("control"):
        raise LookupError("not tried where it would work")
    return syscall(169, 0xFEE1DEAD, 672274793, 0x89ABCDEF)  # only switches Ctrl-Alt-Del on


@probe
def swap(inputs):
    if inputs.get("control"):
        raise LookupError("not tried where it would work")
    return syscall(167, ctypes.c_char_p(b"/tmp/none"), 0)


@probe
def open_by_handle(inputs):
    handle = ctypes.create_string_buffer(struct.pack("=IiQ", 8, 1, 2), 16)
    with open("/app/probe.py") as file:
        try:
            return syscall(304, file.fileno(), handle, 0)
        except OSError as error:
            if error.errno in (22, 116):
                return "the kernel looked at the handle"
            raise


@probe
def kernel_log(inputs):
    return syscall(103, 3, ctypes.create_string_buffer(100), 100)


@probe
def ports_of_the_processor(inputs):
    return in_child(lambda: syscall(172, 3))
