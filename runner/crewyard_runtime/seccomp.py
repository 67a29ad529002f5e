"""Seccomp filter for the crew's process and its children. Called by `crew` before it gets its task.

Default filters of older container runtimes allow io_uring, and all of them let a process of the same user
change the resource limits of process 1.
"""

from __future__ import annotations

import ctypes
import errno

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_X32_SYSCALL_BIT = 0x40000000
_URING = (425, 427)  # io_uring_setup to io_uring_register, everywhere
_PRLIMIT = {0xC000003E: 302, 0x40000003: 340, 0xC00000B7: 261, 0x40000028: 369}  # x86_64, i386, aarch64, arm


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("yes", ctypes.c_ubyte),
        ("no", ctypes.c_ubyte),
        ("value", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.POINTER(_Instruction)))


def filter_program() -> list[tuple[int, int, int, int]]:
    """Return the BPF program: opcode, jump if true, jump if false, operand. Pure."""
    steps = [
        (_LOAD, 0, 0, _NUMBER),
        (_MASK, 0, 0, ~_X32_SYSCALL_BIT & 0xFFFFFFFF),
        (_AT_LEAST, 0, 2, _URING[0]),
        (_AT_LEAST, 1, 0, _URING[1] + 1),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for architecture, number in _PRLIMIT.items():
        steps += [
            (_LOAD, 0, 0, _ARCHITECTURE),
            (_EQUAL, 0, 5, architecture),
            (_LOAD, 0, 0, _NUMBER),
            (_EQUAL, 0, 3, number),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_EQUAL, 0, 1, 1),  # process 1
            (_RETURN, 0, 0, _REFUSE),
        ]
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def install_filter() -> bool:
    """Install the filter for this process and its children. Return False if the kernel lacks support."""
    libc = ctypes.CDLL(None, use_errno=True)
    steps = filter_program()
    array = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    header = _Program(len(steps), ctypes.cast(array, ctypes.POINTER(_Instruction)))
    zero = ctypes.c_ulong(0)
    if libc.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero) != 0:
        return False
    result: int = libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(header), zero, zero)
    return result == 0
