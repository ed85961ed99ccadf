"""Executes the notebooks, each in a fresh kernel, and fails where one of them does. Nothing is written back."""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main() -> None:
    folder = Path(__file__).resolve().parents[1] / "notebooks"
    notebooks = sorted(folder.glob("*.ipynb"))
    if not notebooks:
        sys.exit(f"there are no notebooks in {folder}")
    for path in notebooks:
        start = time.monotonic()
        notebook = nbformat.read(path, as_version=4)
        stored = [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
        if stored:
            sys.exit(f"{path.name} has stored outputs: clear them before committing")
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
        print(f"{path.name}: {len(notebook.cells)} cells in {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
