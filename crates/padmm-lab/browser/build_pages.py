"""Writes the pages that the browser tests open: build_pages.py PROGRAMS DIR.

PROGRAMS is a folder of release builds, such as target/release: the commands that are shipped, and the
example `pages` of the chart library for what no command would put on a page.
"""

import pathlib
import shutil
import subprocess
import sys

SCHEMA = """\
missing = "drop"
missing_values = ["?"]
on_out_of_range = "error"
on_unknown_category = "error"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
site = { column = "hospital" }
columns = [
  { name = "age", kind = "numeric", lower = 0, upper = 100 },
  { name = "dose", kind = "numeric", lower = 0, upper = 1 },
  { name = "blood", kind = "categorical", values = ["A", "B", "O"] },
]
"""


def table(n: int) -> str:
    """A CSV of n records at three sites, the same every time."""
    lines, state = ["age,dose,blood,hospital,ill"], 1
    for i in range(n):
        # Multiplicative congruential numbers: enough to look unordered.
        state = state * 48271 % 2_147_483_647
        age, dose = 20 + state % 70, state // 100 % 1000 / 1000
        ill = age / 100 + 0.5 * dose + state // 7 % 100 / 100 > 1.2
        blood, site = "ABO"[state // 3 % 3], ["north", "south", "west"][i % 3]
        lines.append(f"{age},{dose},{blood},{site},{'yes' if ill else 'no'}")
    return "\n".join(lines) + "\n"


def main(programs: pathlib.Path, out: pathlib.Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "t.csv").write_text(table(120), encoding="utf-8")
    (out / "s.toml").write_text(SCHEMA, encoding="utf-8")

    def run(*command: str) -> None:
        print("+", pathlib.Path(command[0]).name, *command[1:], flush=True)
        subprocess.run(command, cwd=out, check=True, stdout=subprocess.DEVNULL)

    padmm = str(programs / "padmm")
    study = ("simulate", "--data", "t.csv", "--schema", "s.toml", "--rounds", "6", "--runs", "2", "--quiet")
    run(str(programs / "examples" / "pages"), ".")
    run(padmm, *study, "--out", "one")
    run(padmm, *study, "--out", "two", "--algorithm", "r-admm", "--epsilon", "2")
    run(padmm, *study, "--out", "three", "--algorithm", "admm")
    run(padmm, "report", "one", "two", "three", "--out", "compared.html")
    run(padmm, "reproduce", "heart", "--runs", "1", "--quiet", "--out", "all")
    run(padmm, "audit", "--tests", "10000", "--quiet", "--out", "audit")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
