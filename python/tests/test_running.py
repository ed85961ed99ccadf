"""Progress, Ctrl-C, the interpreter's lock, and memory."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from tqdm import tqdm

import padmm


def test_progress_is_told_from_the_calling_thread():
    heard, threads = [], set()

    def listen(progress):
        heard.append(progress)
        threads.add(threading.get_ident())

    result = padmm.simulate(dataset="heart", rounds=6, progress=listen)
    assert [p.done for p in heard] == list(range(1, 13)) and heard[0].total == 12
    assert threads == {threading.get_ident()}
    assert heard[-1].average_loss == result.record["runs"][0]["trace"][-1]["average_loss"]


def test_bars_of_tqdm_move(capsys):
    with tqdm(file=sys.stdout) as bar:
        padmm.simulate(dataset="heart", rounds=4, reference=False, progress=bar)
        assert bar.n == 4 and bar.total == 4
    padmm.simulate(dataset="heart", rounds=3, progress=tqdm)
    padmm.simulate(dataset="heart", rounds=3, progress=True)
    with pytest.raises(TypeError):
        padmm.simulate(dataset="heart", rounds=3, progress=3)


def test_an_error_in_the_callback_ends_the_run():
    def refuse(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        padmm.simulate(dataset="heart", rounds=1000, progress=refuse)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("work", ["simulate", "fit"])
def test_ctrl_c_ends_the_call_long_before_the_run(work):
    code = {
        "simulate": "padmm.simulate(rounds=100000, decay=1.0, reference=False)",
        # One round of this takes long: whoever presses Ctrl-C does not wait for it.
        "fit": "X = numpy.random.default_rng(0).random((200000, 60)); y = X[:, 0] > 0.5\n"
        "    print('go', flush=True)\n"
        "    padmm.PrivateADMMClassifier(bounds=(0, 1), random_state=0, rounds=100000, decay=1.0).fit(X, y)",
    }[work]
    program = (
        "import numpy, padmm, time\n"
        "padmm.simulate, padmm.PrivateADMMClassifier\n"
        "print('go', flush=True)\n"
        f"try:\n    {code}\nexcept KeyboardInterrupt:\n    print(time.time(), flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        for _ in range(1 if work == "simulate" else 2):
            assert child.stdout.readline().strip() == "go"
        # Long enough to be at work; not a race, because a run of so many rounds does not end by itself.
        time.sleep(1.5)
        pressed = time.time()
        os.kill(child.pid, signal.SIGINT)
        stopped = float(child.stdout.readline())
        # It takes a tenth of a second; the bound is for machines that do a lot besides. The run itself would take many minutes.
        assert stopped - pressed < 20.0
    finally:
        child.kill()
        child.wait()


def test_the_lock_is_free_while_it_computes():
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    padmm.simulate(rounds=200, reference=False)
    stop.set()
    thread.join()
    assert counted[0] > 20, "another thread ran meanwhile"


def test_a_dense_matrix_is_copied_once():
    # Peak memory of a process that fits, against the size of its matrix; the matrix itself is there before.
    program = """
import resource, numpy, padmm
from padmm import PrivateADMMClassifier
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
small = numpy.random.default_rng(0).random((2000, 100))
PrivateADMMClassifier(bounds=(0, 1), random_state=0, rounds=2).fit(small, small[:, 0] > 0.5)
X = numpy.random.default_rng(0).random((200_000, 100))
y = X[:, 0] > 0.5
before = peak()
model = PrivateADMMClassifier(bounds=(0, 1), random_state=0, rounds=2).fit(X, y)
after = peak()
model.predict(X)
print((after - before) / X.nbytes, (peak() - after) / X.nbytes)
"""
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    fitting, predicting = map(float, found.stdout.split())
    assert fitting < 1.3, "one copy, and what the rounds need"
    assert predicting < 0.3


def test_threads_do_not_change_the_result():
    results = [padmm.simulate(dataset="heart", rounds=4, threads=n, reference=False) for n in (1, 2, None)]
    assert all(np.array_equal(r.coefficients, results[0].coefficients) for r in results)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        padmm.simulate(dataset="heart", rounds=4, threads=0)
