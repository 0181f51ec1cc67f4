"""Loading, running, binding and unloading programs."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from pypto import _native

FP32 = 0
RUNTIMES = ("host_build_graph", "tensormap_and_ringbuffer")


def bits(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def described(array: np.ndarray) -> tuple[int, int, tuple[int, ...], int]:
    return (array.ctypes.data, array.nbytes, array.shape, FP32)


def arrays(rows: int = 5) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
    return x, np.zeros_like(x)


@pytest.fixture
def chip():
    chip = _native.Chip("a2a3sim")
    yield chip
    chip.close()


def load(kernel: Path, orchestration: Path, runtime: str = RUNTIMES[1]) -> _native.Program:
    return _native.load_program([(0, "aiv", str(kernel))], str(orchestration), runtime, 2, 1)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_runs_on_the_callers_memory(chip, add_kernel, orchestration, runtime) -> None:
    program = load(add_kernel, orchestration, runtime)
    x, y = arrays()
    program.run(chip, [described(x), described(y)], [bits(2.5)])
    np.testing.assert_array_equal(y, x + np.float32(2.5))


def test_bound_call_takes_new_addresses(chip, add_kernel, orchestration) -> None:
    program = load(add_kernel, orchestration)
    x, y = arrays()
    call = program.bind(chip, [(x.nbytes, x.shape, FP32), (y.nbytes, y.shape, FP32)])
    for step in (1.0, 2.0):
        x, y = arrays()
        assert call(x.ctypes.data, y.ctypes.data, bits(step)) is None
        np.testing.assert_array_equal(y, x + np.float32(step))
    program.close()
    # The call keeps the libraries it uses.
    call(x.ctypes.data, y.ctypes.data, bits(1.0))


def test_bound_call_refuses_wrong_arguments(chip, add_kernel, orchestration) -> None:
    call = load(add_kernel, orchestration).bind(chip, [(320, (5, 16), FP32)] * 2)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        call(1, 2)
    with pytest.raises(TypeError, match="no keyword"):
        call(1, 2, 3, x=4)
    with pytest.raises(TypeError):
        call("1", 2, 3)
    with pytest.raises(OverflowError):
        call(-1, 2, 3)
    with pytest.raises(TypeError):
        _native.BoundCall()


class Tensor:
    """What the native layer asks of a torch tensor, over an array."""

    def __init__(self, array, contiguous=True, is_cpu=True, negated=False, error=None):
        self.array, self.contiguous, self.is_cpu, self.error = array, contiguous, is_cpu, error
        self.nbytes = lambda: array.nbytes
        self.is_neg = lambda: negated

    def untyped_storage(self):
        return self

    def is_contiguous(self):
        return self.contiguous

    def data_ptr(self):
        if self.error is not None:
            raise self.error
        return self.array.ctypes.data


def test_bound_call_takes_the_addresses_from_tensors(chip, add_kernel, orchestration) -> None:
    call = load(add_kernel, orchestration).bind(chip, [(320, (5, 16), FP32)] * 2)
    x, y = arrays()
    assert call.run_tensors((Tensor(x), Tensor(y)), bits(2.5)) is True
    np.testing.assert_array_equal(y, x + np.float32(2.5))


def test_nothing_runs_with_tensors_that_are_not_plain(chip, add_kernel, orchestration) -> None:
    call = load(add_kernel, orchestration).bind(chip, [(320, (5, 16), FP32)] * 2)
    x, y = arrays()
    before = y.copy()
    for odd in (
        Tensor(y, contiguous=False),
        Tensor(y, is_cpu=False),
        Tensor(y, negated=True),
        Tensor(y, error=RuntimeError("no memory")),
        object(),
        None,
    ):
        assert call.run_tensors((Tensor(x), odd), bits(2.5)) is False
    np.testing.assert_array_equal(y, before)


def test_what_interrupts_a_tensor_reaches_the_caller(chip, add_kernel, orchestration) -> None:
    call = load(add_kernel, orchestration).bind(chip, [(320, (5, 16), FP32)] * 2)
    x, y = arrays()
    with pytest.raises(KeyboardInterrupt):
        call.run_tensors((Tensor(x), Tensor(y, error=KeyboardInterrupt())), bits(2.5))


def test_wrong_counts_of_tensors_and_scalars_are_refused(chip, add_kernel, orchestration) -> None:
    call = load(add_kernel, orchestration).bind(chip, [(320, (5, 16), FP32)] * 2)
    x, y = arrays()
    both = (Tensor(x), Tensor(y))
    for arguments in ((), (both,), (both[:1], bits(1.0)), (list(both), bits(1.0)), (both, 1, 2)):
        with pytest.raises(TypeError, match="a tuple of 2 tensors and 1 scalars"):
            call.run_tensors(*arguments)
    with pytest.raises(OverflowError):
        call.run_tensors(both, -1)


def test_fault_names_kernel_and_place(chip, add_kernel, orchestration) -> None:
    program = load(add_kernel, orchestration)
    x, y = arrays(17)
    with pytest.raises(_native.KernelFault, match="SetValidShape: valid region") as caught:
        program.run(chip, [described(x), described(y)], [0])
    assert (caught.value.op, caught.value.kernel) == ("SetValidShape", 0)
    x, y = arrays(5)
    short = (y.ctypes.data, 4 * 16 * 4, (4, 16), FP32)
    with pytest.raises(_native.KernelFault) as caught:
        program.run(chip, [described(x), short], [0])
    fault = caught.value
    assert isinstance(fault, RuntimeError)
    assert "outside the tensors" in fault.message
    assert (fault.unit, fault.line, fault.column, fault.pto_line) == ("unit:kernel", 7, 8, 6)


def test_wrong_arguments_are_named(chip, add_kernel, orchestration) -> None:
    program = load(add_kernel, orchestration)
    x, y = arrays()
    with pytest.raises(TypeError, match="takes 2 tensors, got 1"):
        program.run(chip, [described(x)], [0])
    with pytest.raises(TypeError, match="takes 1 scalars, got 0"):
        program.run(chip, [described(x), described(y)], [])
    with pytest.raises(ValueError, match="more bytes"):
        program.run(chip, [(x.ctypes.data, 8, x.shape, FP32), described(y)], [0])
    with pytest.raises(ValueError, match="dtype code"):
        program.run(chip, [(x.ctypes.data, 8, (1,), 99), described(y)], [0])


def test_load_errors_say_why(tmp_path, add_kernel, orchestration) -> None:
    with pytest.raises(_native.LoadError, match="cannot load"):
        load(tmp_path / "absent.so", orchestration)
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    with pytest.raises(ImportError, match=r"broken\.so"):
        load(broken, orchestration)
    with pytest.raises(_native.LoadError, match="does not export kernel_entry"):
        load(orchestration, orchestration)
    with pytest.raises(_native.LoadError, match="takes 3 arguments, not 1 tensors and 1 scalars"):
        _native.load_program([(0, "aiv", str(add_kernel))], str(orchestration), RUNTIMES[0], 1, 1)
    with pytest.raises(_native.LoadError, match="two kernels have the id 0"):
        _native.load_program(
            [(0, "aiv", str(add_kernel))] * 2, str(orchestration), RUNTIMES[0], 2, 1
        )
    with pytest.raises(ValueError, match="runtime 'other' is not one of"):
        load(add_kernel, orchestration, "other")
    with pytest.raises(ValueError, match="core type 'gpu'"):
        _native.load_program([(0, "gpu", str(add_kernel))], str(orchestration), RUNTIMES[0], 2, 1)


def test_kernel_of_another_architecture_is_refused(chip, compile_kernel, orchestration) -> None:
    kernel = compile_kernel("a5", "", "a5sim")
    x, y = arrays()
    with pytest.raises(_native.KernelFault, match="another architecture"):
        load(kernel, orchestration).run(chip, [described(x), described(y)], [0])


def mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


def test_close_unloads_and_a_new_path_loads_new_code(
    chip, tmp_path, add_kernel, compile_kernel, orchestration
) -> None:
    first = tmp_path / "kernel.1.so"
    shutil.copyfile(add_kernel, first)
    program = load(first, orchestration)
    assert mapped(first)
    program.close()
    program.close()
    assert program.closed
    assert not mapped(first)
    x, y = arrays()
    with pytest.raises(RuntimeError, match="closed"):
        program.run(chip, [described(x), described(y)], [0])
    second = tmp_path / "kernel.2.so"
    shutil.copyfile(compile_kernel("negate", "TNEG(tile, tile);"), second)
    load(second, orchestration).run(chip, [described(x), described(y)], [0])
    np.testing.assert_array_equal(y, -x)


def test_many_programs_load_run_and_unload(chip, tmp_path, add_kernel, orchestration) -> None:
    programs = []
    for i in range(40):
        kernel = tmp_path / f"k{i}.so"
        entry = tmp_path / f"o{i}.so"
        shutil.copyfile(add_kernel, kernel)
        shutil.copyfile(orchestration, entry)
        programs.append(load(kernel, entry))
    for i, program in enumerate(programs):
        x, y = arrays()
        program.run(chip, [described(x), described(y)], [bits(float(i))])
        np.testing.assert_array_equal(y, x + np.float32(i))
        program.close()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_libraries_have_no_thread_local_or_unique_symbols(add_kernel, orchestration) -> None:
    for library, exports in ((add_kernel, {"kernel_entry"}), (orchestration, None)):
        table = subprocess.run(
            ["readelf", "-W", "--syms", "--dyn-syms", str(library)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        kinds = {tuple(line.split()[3:5]) for line in table.splitlines() if len(line.split()) >= 8}
        assert not any(kind == "TLS" or binding == "UNIQUE" for kind, binding in kinds)
        if exports is not None:
            dynamic = table.split("'.symtab'")[0]
            exported = {
                fields[7]
                for fields in map(str.split, dynamic.splitlines())
                if len(fields) >= 8 and fields[6].isdigit() and fields[3] == "FUNC"
            }
            assert exported == exports


ENDLESS = 'for (;;) { PTO_AT(9, "unit:kernel", 1, 1); TADDS(tile, tile, 0.0f); }'


@pytest.mark.parametrize("helps", [True, False])
def test_interrupt_ends_an_endless_kernel(compile_kernel, orchestration, helps) -> None:
    chip = _native.Chip("a2a3sim", caller_helps=helps)
    program = load(compile_kernel("endless", ENDLESS), orchestration)
    x, y = arrays()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            program.run(chip, [described(x), described(y)], [0])
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    assert time.monotonic() - start < 30
    chip.close()


def test_runs_overlap_without_the_gil(chip, add_kernel, orchestration) -> None:
    program = load(add_kernel, orchestration)

    def work(value: float, results: list[bool]) -> None:
        for _ in range(200):
            x, y = arrays()
            program.run(chip, [described(x), described(y)], [bits(value)])
            results.append(bool((y == x + np.float32(value)).all()))

    results: list[bool] = []
    threads = [threading.Thread(target=work, args=(float(i), results)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 800
    assert all(results)


def test_works_in_a_forked_child(chip, add_kernel, orchestration) -> None:
    program = load(add_kernel, orchestration)
    x, y = arrays()
    program.run(chip, [described(x), described(y)], [bits(1.0)])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            program.run(chip, [described(x), described(y)], [bits(7.0)])
            status = 0 if (y == x + np.float32(7)).all() else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(y, x + np.float32(1))


def test_tensors_without_memory_are_refused(chip, add_kernel, orchestration) -> None:
    program = load(add_kernel, orchestration)
    x, _ = arrays()
    nowhere = (0, x.nbytes, x.shape, FP32)
    with pytest.raises(ValueError, match="tensor 1 has elements but no memory"):
        program.run(chip, [described(x), nowhere], [bits(1.0)])
    call = program.bind(chip, [(x.nbytes, x.shape, FP32)] * 2)
    with pytest.raises(ValueError, match="tensor 0 has elements but no memory"):
        call(0, x.ctypes.data, bits(1.0))
    empty = (0, 0, (0, 16), FP32)
    program.run(chip, [empty, empty], [bits(1.0)])


ENDS_WITH_RUNS = """
import sys, threading, time
import numpy as np
from pypto import _native
kernel, orchestration = sys.argv[1:]
chip = _native.Chip("a2a3sim")
program = _native.load_program(
    [(0, "aiv", kernel)], orchestration, "tensormap_and_ringbuffer", 2, 1)
x, y = np.zeros((5, 16), np.float32), np.zeros((5, 16), np.float32)
def run():
    tensors = [(a.ctypes.data, a.nbytes, a.shape, 0) for a in (x, y)]
    program.run(chip, tensors, [0])
for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.2)
print("end", flush=True)
"""


def test_the_interpreter_ends_while_daemon_threads_run(compile_kernel, orchestration) -> None:
    kernel = compile_kernel("forever", ENDLESS)
    child = subprocess.run(
        [sys.executable, "-c", ENDS_WITH_RUNS, str(kernel), str(orchestration)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (child.returncode, child.stdout, child.stderr) == (0, "end\n", "")
