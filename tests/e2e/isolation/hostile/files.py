"""Attempts to write where nothing is to be written, and to read what is the machine's."""

import glob
import os
import shutil
import stat
import subprocess
import sysconfig
import tempfile

from probe import Stopped, probe


def _write(path, text="0"):
    with open(path, "a") as file:
        file.write(text)
    return f"wrote {path}"


@probe
def write_runner(inputs):
    return _write("/opt/crewyard/runner/child.py", "")


@probe
def write_packages(inputs):
    return _write(sysconfig.get_paths()["purelib"] + "/probe.pth")


@probe
def write_passwd(inputs):
    return _write("/etc/passwd", "")


@probe
def write_system_program(inputs):
    return _write("/usr/bin/env", "")


@probe
def write_root_directory(inputs):
    os.mkdir("/probe")
    os.rmdir("/probe")
    return "made /probe"


@probe
def read_shadow(inputs):
    with open("/etc/shadow") as file:
        return f"read {len(file.read())} characters"


@probe
def change_owner(inputs):
    with tempfile.NamedTemporaryFile() as file:
        os.chown(file.name, 0, 0)
        return "gave a file to root"


@probe
def link_to_a_file_of_root(inputs):
    place = tempfile.mkdtemp()
    try:
        os.link("/etc/shadow", f"{place}/shadow")
        with open(f"{place}/shadow") as file:
            return f"read {len(file.read())} characters"
    finally:
        shutil.rmtree(place)


@probe
def make_a_device(inputs):
    place = tempfile.mkdtemp()
    try:
        os.mknod(f"{place}/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0))
        return "made a device"
    finally:
        shutil.rmtree(place)


@probe
def open_devices(inputs):
    found = [
        path
        for path in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/fuse")
        if os.path.exists(path)
    ]
    for path in found:
        with open(path, "rb"):
            return f"opened {path}"
    raise Stopped("there is none")


@probe
def find_a_socket_of_the_machine(inputs):
    names = ("containerd.sock", "docker.sock", "crio.sock", "fences.sock", "kubelet.sock")
    for place in ("/run", "/var/run", "/var/lib/kubelet", "/root"):
        for above, _, files in os.walk(place):
            for name in files:
                if name in names:
                    return f"{above}/{name}"
    raise Stopped("none is below /run, /var/lib/kubelet, /root")


@probe
def find_a_mount_of_the_machine(inputs):
    own = {"resolv.conf", "hosts", "hostname", "termination-log"}
    with open("/proc/self/mountinfo") as file:
        lines = [line.split() for line in file]
    for words in lines:
        after = words.index("-")
        kind, source = words[after + 1], words[after + 2]
        if kind in ("ext4", "xfs", "btrfs") and os.path.basename(words[4]) not in own:
            return f"{words[4]} is {source} ({kind})"
    raise Stopped("nothing of the machine's disk but what Kubernetes gives every pod")


@probe
def service_account_token(inputs):
    with open("/var/run/secrets/kubernetes.io/serviceaccount/token") as file:
        return f"read {len(file.read())} characters"


@probe
def set_a_kernel_setting(inputs):
    with open("/proc/sys/kernel/core_pattern") as file:
        before = file.read()
    with open("/proc/sys/kernel/core_pattern", "w") as file:
        file.write(before)
    return "wrote kernel.core_pattern"


@probe
def ask_the_kernel_for_help(inputs):
    with open("/proc/sysrq-trigger", "w"):
        return "opened sysrq-trigger"


@probe
def read_kernel_memory(inputs):
    with open("/proc/kcore", "rb") as file:
        data = file.read(16)
    if not data:
        raise Stopped("/proc/kcore is empty")
    return f"read {len(data)} bytes"


@probe
def read_firmware(inputs):
    found = glob.glob("/sys/firmware/*")
    if not found:
        raise Stopped("/sys/firmware is empty")
    return str(found)


@probe
def raise_own_limits(inputs):
    files = ("memory.max", "pids.max", "memory/memory.limit_in_bytes", "pids/pids.max")
    present = [f"/sys/fs/cgroup/{name}" for name in files if os.path.exists(f"/sys/fs/cgroup/{name}")]
    for path in present:
        with open(path) as file:
            before = file.read()
        with open(path, "w") as file:
            file.write(before)
        return f"wrote {path}"
    raise Stopped("there is none to write")


@probe
def make_a_cgroup(inputs):
    base = "/sys/fs/cgroup/memory" if os.path.isdir("/sys/fs/cgroup/memory") else "/sys/fs/cgroup"
    os.mkdir(f"{base}/probe")
    os.rmdir(f"{base}/probe")
    return "made a cgroup"


@probe
def a_program_that_makes_root(inputs):
    place = tempfile.mkdtemp()
    try:
        copy = f"{place}/python3"
        shutil.copy(os.path.realpath("/usr/bin/python3"), copy)
        os.chmod(copy, 0o4755)
        process = subprocess.run(
            [copy, "-c", "import os; print(os.geteuid())"], capture_output=True, text=True, timeout=20
        )
        if process.stdout.strip() == "0":
            return "runs as root"
        raise Stopped(f"runs as {process.stdout.strip()}")
    finally:
        shutil.rmtree(place)


@probe
def programs_of_the_image_that_make_root(inputs):
    found = []
    for above in ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib"):
        for name in os.listdir(above):
            path = f"{above}/{name}"
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_ISUID and status.st_uid == 0:
                found.append(path)
    with open("/proc/self/status") as file:
        sealed = "NoNewPrivs:\t1" in file.read()
    if sealed or not found:
        raise Stopped(f"{len(found)} of them, no new privileges: {sealed}")
    return str(found[:3])
