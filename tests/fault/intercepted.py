"""A child whose every system call passes through this process before the kernel runs it.

The kernel's own interception (seccomp user notification) sees what no replacement of Python
functions can: calls of C code, of threads, of the interpreter itself. For each call that concerns
a given directory the parent decides: let it run, fail it with an errno, or kill the child there.

A call belongs in `_FILE_CALLS` or `_NEUTRAL`; `Run.unknown` lists those in neither, so that no new
kind of call goes unnoticed. Only x86-64 Linux has a table.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import pickle
import platform
import select
import signal
import socket
import struct
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

# By number: the name, and what each argument is: f a descriptor, p a path, d the directory
# descriptor that the following p is relative to.
_FILE_CALLS = {
    0: ("read", "f"), 1: ("write", "f"), 2: ("open", "p"), 3: ("close", "f"), 4: ("stat", "p"),
    5: ("fstat", "f"), 6: ("lstat", "p"), 8: ("lseek", "f"), 9: ("mmap", "----f"),
    16: ("ioctl", "f"), 17: ("pread", "f"), 18: ("pwrite", "f"), 19: ("readv", "f"),
    20: ("writev", "f"), 21: ("access", "p"), 32: ("dup", "f"), 33: ("dup2", "f"),
    40: ("sendfile", "ff"), 72: ("fcntl", "f"), 73: ("flock", "f"), 74: ("fsync", "f"),
    75: ("fdatasync", "f"), 76: ("truncate", "p"), 77: ("ftruncate", "f"), 79: ("getcwd", ""),
    80: ("chdir", "p"), 82: ("rename", "pp"), 83: ("mkdir", "p"), 84: ("rmdir", "p"),
    86: ("link", "pp"), 87: ("unlink", "p"), 88: ("symlink", "-p"), 89: ("readlink", "p"),
    90: ("chmod", "p"), 91: ("fchmod", "f"), 137: ("statfs", "p"), 138: ("fstatfs", "f"),
    187: ("readahead", "f"), 191: ("getxattr", "p"), 192: ("lgetxattr", "p"),
    193: ("fgetxattr", "f"), 194: ("listxattr", "p"), 195: ("llistxattr", "p"),
    217: ("getdents", "f"), 221: ("fadvise", "f"), 257: ("openat", "dp"), 258: ("mkdirat", "dp"),
    262: ("fstatat", "dp"), 263: ("unlinkat", "dp"), 264: ("renameat", "dpdp"),
    265: ("linkat", "dpdp"), 266: ("symlinkat", "-dp"), 267: ("readlinkat", "dp"),
    268: ("fchmodat", "dp"), 269: ("faccessat", "dp"), 277: ("sync_file_range", "f"),
    280: ("utimensat", "dp"), 285: ("fallocate", "f"), 292: ("dup3", "f"), 295: ("preadv", "f"),
    296: ("pwritev", "f"), 306: ("syncfs", "f"), 316: ("renameat2", "dpdp"),
    326: ("copy_file_range", "f-f"), 327: ("preadv2", "f"), 332: ("statx", "dp"),
    437: ("openat2", "dp"), 439: ("faccessat2", "dp"),
}  # fmt: skip

# Memory, signals, threads, time, identity, and the pipes of the tests: no file is concerned.
_NEUTRAL = (
    10, 11, 12, 13, 14, 15, 22, 24, 25, 26, 28, 35, 39, 44, 45, 46, 47, 56, 57, 58, 60, 61, 62,
    63, 95, 96, 97, 98, 99, 102, 104, 107, 108, 110, 131, 158, 186, 202, 203, 204, 218, 228, 229,
    230, 231, 234, 271, 273, 281, 293, 302, 317, 318, 324, 334, 435,
)  # fmt: skip

_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1
_SECCOMP, _PR_SET_NO_NEW_PRIVS = 317, 38
_MARKS = "/intercepted/"

_libc = ctypes.CDLL(None, use_errno=True)


class Call(NamedTuple):
    """A system call as the kernel was asked for it."""

    name: str
    paths: tuple[str, ...]


# Asked about each call: an errno to fail it with, KILL, DONE, or None to let it run.
Decide = Callable[[int, Call], "int | None"]
KILL = -1
# Answered as if it had been done.
DONE = 0
# Seconds without any call after which a child counts as hanging.
_PATIENCE = 60


@dataclass(slots=True)
class Run:
    """What one child did. `answer` is what its action returned, if it came to that."""

    calls: list[Call] = field(default_factory=list)
    struck: Call | None = None
    unknown: set[int] = field(default_factory=set)
    answer: object = None
    status: int = 0


class Unavailable(Exception):
    """This machine cannot intercept system calls."""


@contextmanager
def uncounted() -> Iterator[None]:
    """Let calls run unseen meanwhile: those of the caller's own code, inside an action."""
    os.access(f"{_MARKS}pause", os.F_OK)
    try:
        yield
    finally:
        os.access(f"{_MARKS}resume", os.F_OK)


@contextmanager
def intercepted(
    action: Callable[[], object], place: os.PathLike[str], decide: Decide
) -> Iterator[Run]:
    """Run `action` in a forked child; its calls that concern `place` go through `decide`.

    Inside the block the action is over and its process is still there, with whatever it still
    holds; `status` is known after the block. The action's answer has to be picklable; an
    exception of it ends up in `answer` too.
    """
    if platform.machine() != "x86_64":
        raise Unavailable(f"no table of system calls for {platform.machine()}")
    run = Run()
    ours, theirs = socket.socketpair()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a waiting thread on its way out
        pid = os.fork()
    if pid == 0:
        ours.close()
        _child(action, theirs)
    theirs.close()
    listener = -1
    try:
        listener = _listener(ours)
        _Supervisor(pid, listener, os.fspath(place), decide, run).serve()
        if answer := _received(ours):
            run.answer = pickle.loads(answer)
        yield run
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        # Whoever waits for a notification to be answered is let go by this, with ENOSYS.
        if listener >= 0:
            os.close(listener)
        ours.close()
        run.status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _listener(connection: socket.socket) -> int:
    data, descriptors, _, _ = socket.recv_fds(connection, 64, 1)
    if not descriptors:
        raise Unavailable(f"the kernel refuses seccomp user notification: {data.decode()}")
    return descriptors[0]


def _received(connection: socket.socket) -> bytes:
    size = connection.recv(8, socket.MSG_WAITALL)
    return connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL) if size else b""


def _child(action: Callable[[], object], connection: socket.socket) -> None:
    status = 99
    try:
        listener = _install()
        if listener < 0:
            connection.send(os.strerror(ctypes.get_errno()).encode())
            os._exit(98)
        socket.send_fds(connection, [b"x"], [listener])
        os.close(listener)
        os.access(f"{_MARKS}resume", os.F_OK)
        try:
            answer: object = action()
        except Exception as error:  # noqa: BLE001  the parent judges it
            answer = error
        data = pickle.dumps(answer)
        os.access(f"{_MARKS}end", os.F_OK)
        connection.sendall(len(data).to_bytes(8, "big") + data)
        connection.recv(1)  # until the parent has looked
        status = 0
    except BaseException:  # noqa: BLE001  a child reports everything and returns nowhere
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("yes", ctypes.c_ubyte),
        ("no", ctypes.c_ubyte),
        ("operand", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction)))


def _install() -> int:
    """Have every call notified that is not neutral; the listener's descriptor, negative if not."""
    lines = [_Instruction(_LOAD, 0, 0, 0)]
    for place, number in enumerate(_NEUTRAL):
        lines.append(_Instruction(_EQUALS, len(_NEUTRAL) - place, 0, number))
    lines.append(_Instruction(_RETURN, 0, 0, _NOTIFY))
    lines.append(_Instruction(_RETURN, 0, 0, _ALLOW))
    instructions = (_Instruction * len(lines))(*lines)
    program = _Program(len(lines), instructions)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return int(_libc.syscall(_SECCOMP, 1, 8, ctypes.byref(program)))


class _Supervisor:
    """Answers the notifications of one child until it ends its action or dies."""

    def __init__(self, pid: int, listener: int, place: str, decide: Decide, run: Run) -> None:
        self._pid = pid
        self._listener = listener
        self._place = place
        self._decide = decide
        self._run = run
        self._counting = False
        self._ready = select.poll()
        self._ready.register(listener, select.POLLIN)
        # Of the threads of the child and of its children, by their numbers.
        self._memories: dict[int, int] = {}

    def serve(self) -> None:
        """Until the action is over."""
        try:
            while self._answer_one():
                pass
        finally:
            for memory in self._memories.values():
                os.close(memory)

    def _answer_one(self) -> bool:
        notice = bytearray(80)
        if not self._ready.poll(_PATIENCE * 1000):
            raise TimeoutError(f"the child hangs after {self._run.calls[-3:]}")
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT) and self._lives():
                return True
            if error.errno == errno.ENOENT:
                return False
            raise
        identity, thread, _, number = struct.unpack_from("=QIIi", notice)
        arguments = struct.unpack_from("=6Q", notice, 32)
        verdict: int | None = None
        goes_on = True
        call = self._call(thread, number, arguments)
        if call is not None and call.paths[:1] and call.paths[0].startswith(_MARKS):
            self._counting = call.paths[0] == f"{_MARKS}resume"
            goes_on = call.paths[0] != f"{_MARKS}end"
        elif self._counting:
            verdict = self._judge(number, call)
        if verdict == KILL:
            os.kill(self._pid, signal.SIGKILL)
            return False
        if verdict is None:
            reply = struct.pack("=QqiI", identity, 0, 0, _CONTINUE)
        else:
            reply = struct.pack("=QqiI", identity, 0, -verdict, 0)
        try:
            fcntl.ioctl(self._listener, _SEND, reply)
        except OSError as error:
            if error.errno != errno.ENOENT:  # the thread is gone
                raise
        return goes_on

    def _lives(self) -> bool:
        return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def _judge(self, number: int, call: Call | None) -> int | None:
        if call is None:
            self._run.unknown.add(number)
            return None
        if not any(self._concerns(path) for path in call.paths):
            return None
        self._run.calls.append(call)
        verdict = self._decide(len(self._run.calls) - 1, call)
        if verdict not in (None, DONE):
            self._run.struck = call
        return verdict

    def _concerns(self, path: str) -> bool:
        return path == self._place or path.startswith(f"{self._place}/")

    def _call(self, thread: int, number: int, arguments: tuple[int, ...]) -> Call | None:
        known = _FILE_CALLS.get(number)
        if known is None:
            return None
        name, kinds = known
        if not self._counting and "p" not in kinds:
            return Call(name, ())
        paths = []
        directory = ""
        for kind, value in zip(kinds, arguments, strict=False):
            if kind == "f":
                paths.append(self._descriptor(thread, value))
            elif kind == "d":
                directory = self._descriptor(thread, value)
            elif kind == "p":
                text = self._text(thread, value)
                paths.append(text if text.startswith("/") else f"{directory}/{text}".rstrip("/"))
        return Call(name, tuple(paths))

    def _descriptor(self, thread: int, value: int) -> str:
        number = ctypes.c_int(value & 0xFFFFFFFF).value
        if number < 0:
            return ""
        try:
            return os.readlink(f"/proc/{thread}/fd/{number}").removesuffix(" (deleted)")
        except OSError:
            return ""

    def _text(self, thread: int, address: int) -> str:
        """A path of a thread's memory; empty for none, or once the thread is gone."""
        if address == 0:
            return ""
        try:
            if thread not in self._memories:
                self._memories[thread] = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
            return self._string(self._memories[thread], address)
        except OSError:
            return ""

    def _string(self, memory: int, address: int) -> str:
        found = b""
        while b"\0" not in found and len(found) < 8192:
            # Not beyond the page: the next one may not be mapped.
            start = address + len(found)
            found += os.pread(memory, 4096 - start % 4096, start)
        return os.fsdecode(found.partition(b"\0")[0])
