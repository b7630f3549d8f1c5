"""`python -m benchmarks.sampled FILE serve …`: what `postroad serve …` does, while its stack is sampled.

A timer of the kernel counts the CPU time of the main thread, where the event loop is; time that it waits does not
count, nor does the thread that commits. Whenever the time has come, one line goes into FILE: the functions on the
stack, innermost first (`stacks.py` reads it). Python runs the handler of a signal between two instructions:

- A call of C is one instruction, so the time that C takes belongs to the function that called it.
- A function that was interrupted on its first instruction has done nothing yet. The time went into what led there,
  which is its caller, or the event loop.
"""

import contextlib
import ctypes
import dis
import os
import pathlib
import signal
import sys
import types
import typing

from postroad import cli

# The tick of many kernels is 4 ms; those whose tick is longer give fewer samples.
NANOSECONDS = 4_000_000
# linux/time.h and asm-generic/siginfo.h.
CLOCK_THREAD_CPUTIME_ID = 3
SIGEV_SIGNAL = 0
FIRST_INSTRUCTION = dis.opmap["RESUME"]


class _SignalEvent(ctypes.Structure):
    """`struct sigevent` of sigevent(7)."""

    _fields_: typing.ClassVar = [
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    ]


class _TimerTimes(ctypes.Structure):
    """`struct itimerspec` of timer_settime(2)."""

    _fields_: typing.ClassVar = [
        ("interval_seconds", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("first_seconds", ctypes.c_long),
        ("first_nanoseconds", ctypes.c_long),
    ]


def main() -> None:
    """Take the file's name away and go on as the command."""
    with watched(pathlib.Path(sys.argv.pop(1))):
        cli.main(prog_name="postroad")


@contextlib.contextmanager
def watched(path: pathlib.Path) -> typing.Iterator[None]:
    """While the block runs, write down what it does; only the main thread can be watched, by itself."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def look(_signal: int, frame: types.FrameType | None) -> None:
        os.write(file, stack_line(frame))

    signal.signal(signal.SIGPROF, look)
    signal.siginterrupt(signal.SIGPROF, False)  # noqa: FBT003 - the library's own form
    try:
        with _ticking():
            yield
    finally:
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        os.close(file)


def stack_line(frame: types.FrameType | None) -> bytes:
    """The stack from this function outwards, or from its caller if it has not begun."""
    if frame is not None and frame.f_code.co_code[frame.f_lasti] == FIRST_INSTRUCTION:
        frame = frame.f_back
    functions = []
    while frame is not None:
        functions.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")
        frame = frame.f_back
    return ("\t".join(functions) + "\n").encode()


@contextlib.contextmanager
def _ticking() -> typing.Iterator[None]:
    """SIGPROF whenever this thread has worked for so long. The standard library has no such timer (timer_create(2))."""
    library = ctypes.CDLL("librt.so.1", use_errno=True)
    event = _SignalEvent(signal=signal.SIGPROF, notify=SIGEV_SIGNAL)
    timer = ctypes.c_void_p()
    if library.timer_create(CLOCK_THREAD_CPUTIME_ID, ctypes.byref(event), ctypes.byref(timer)):
        raise OSError(ctypes.get_errno(), "there is no timer")
    times = _TimerTimes(interval_nanoseconds=NANOSECONDS, first_nanoseconds=NANOSECONDS)
    try:
        if library.timer_settime(timer, 0, ctypes.byref(times), None):
            raise OSError(ctypes.get_errno(), "the timer does not start")
        yield
    finally:
        library.timer_delete(timer)


if __name__ == "__main__":
    main()
