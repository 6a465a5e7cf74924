"""What must hold before the extension is loaded."""

from importlib import metadata, resources


def torch_version(running: str) -> None:
    """The extension is compiled for one minor version of torch and works with that one only."""
    path = resources.files("scalecom") / "built_for_torch"
    if not path.is_file():
        raise ImportError("scalecom is not built: install it with `pip install .`")
    built = path.read_text(encoding="utf-8").strip()
    if built.split(".")[:2] != running.split("+")[0].split(".")[:2]:
        version = metadata.version("scalecom")
        raise ImportError(
            f"scalecom {version} was built for torch {built}, and this is torch {running}; "
            "install it anew, in scalecom's folder: pip install --force-reinstall --no-deps ."
        )
