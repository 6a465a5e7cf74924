"""The program takes its standard library from the compiler, and not from libtorch."""

from program import PROGRAM, run_tests

# After `program`, which names the folder.
from loading import foreign_filesystem


def test_the_standard_library_is_the_compilers(folder):
    assert not foreign_filesystem([PROGRAM, "--version"], PROGRAM)


if __name__ == "__main__":
    run_tests(globals())
