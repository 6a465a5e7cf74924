"""The extension takes its standard library from the compiler, and not from libtorch."""

import importlib.util
import pathlib
import sys

# Last, as folders of tests have the names of modules.
sys.path.append(str(pathlib.Path(__file__).parents[1]))
from loading import foreign_filesystem  # noqa: E402: its folder is no package


def test_the_standard_library_is_the_compilers() -> None:
    extension = importlib.util.find_spec("scalecom._core")
    assert extension is not None and extension.origin is not None
    assert not foreign_filesystem([sys.executable, "-c", "import scalecom._core"], extension.origin)
