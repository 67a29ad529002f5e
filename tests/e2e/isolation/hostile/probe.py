"""What an attempt is, and the list of all. An attempt returns what it got, or raises what stopped it."""

import ctypes
import os
import threading

ALL = {}
SECONDS = 30
_libc = ctypes.CDLL(None, use_errno=True)


class Stopped(Exception):
    """Nothing complained, and yet it came to nothing; the text says how one can tell."""


def probe(function):
    """Puts a function on the list."""
    ALL[function.__name__] = function
    return function


def syscall(number, *arguments):
    """A system call by its number on this machine. Raises OSError."""
    wide = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result = _libc.syscall(ctypes.c_long(number), *wide)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def in_child(work):
    """Does it in a process of its own, which it would change."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writes, f"ok {work()}".encode())
        except (OSError, Stopped) as error:
            os.write(writes, f"no {error}".encode())
        finally:
            os._exit(0)
    os.close(writes)
    answer = os.read(reads, 400).decode()
    os.close(reads)
    os.waitpid(pid, 0)
    if not answer.startswith("ok"):
        raise Stopped(answer.removeprefix("no ") or "the process was killed")
    return answer.removeprefix("ok ")


def attempt(function, inputs):
    """Whether it was stopped, and how; by its own words."""
    try:
        got = function(inputs)
    except (OSError, Stopped, ValueError, LookupError) as error:
        return {"blocked": True, "how": f"{type(error).__name__}: {error}"[:200]}
    return {"blocked": False, "how": str(got)[:200]}


def everything(inputs):
    """All attempts, those that wait beside one another; by their names."""
    found = {}
    waiting = {}
    for name, function in ALL.items():
        if getattr(function, "waits", False):
            thread = threading.Thread(
                target=lambda name=name, function=function: found.update({name: attempt(function, inputs)})
            )
            thread.start()
            waiting[name] = thread
    for name, function in ALL.items():
        if name not in waiting:
            found[name] = attempt(function, inputs)
    for name, thread in waiting.items():
        thread.join(SECONDS)
        found.setdefault(name, {"blocked": False, "how": "it never came back"})
    return found


def waits(function):
    """Marks one that takes a while: it is tried beside the others."""
    function.waits = True
    return function
