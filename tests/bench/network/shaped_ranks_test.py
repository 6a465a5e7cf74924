"""A rank that fails takes the others along, and a script's ranks do their work alone."""

import argparse
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench" / "network"))

import shaped_ranks  # noqa: E402


def start(code):
    return subprocess.Popen([sys.executable, "-c", code])


def expect_others_ended():
    # Whichever it is: nobody is waited for in the order of ranks.
    for failing in range(3):
        ranks = [start("raise SystemExit(3)" if rank == failing else "import time; time.sleep(600)")
                 for rank in range(3)]
        began = time.monotonic()
        assert not shaped_ranks.finish(ranks)
        assert time.monotonic() - began < 60
        assert all(rank.returncode is not None for rank in ranks)


def expect_work_only():
    done = []

    def never(*arguments):
        raise AssertionError(arguments)

    sys.argv = ["script", "--worker"]
    shaped_ranks.main(argparse.ArgumentParser(), done.append, never, never)
    assert len(done) == 1 and done[0].worker, done


expect_others_ended()
assert shaped_ranks.finish([start("pass"), start("pass")])
expect_work_only()
print("ok")
