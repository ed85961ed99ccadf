"""Writes the small Parquet files of the tests, and the CSV that they must agree with. The records are invented.

    python make.py        # needs pandas and pyarrow
"""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent

table = pd.DataFrame(
    {
        "patient": [f"p{i}" for i in range(12)],
        "age": [34, 51, 62, 47, 29, 70, 58, 44, 39, 66, 73, 55],
        # Gaps turn whole numbers into floats in pandas: 1 becomes 1.0.
        "grade": [1, 2, None, 3, 1, 2, 3, 1, 2, 2, 1, 3],
        "marker": [0.1, 2.75, 1e-3, 3.3333333333333335, 0.0, 4.9, 12.5, 1.5, 0.30000000000000004, 2.0, 3.1, -0.5],
        "smoker": ["yes", "no", "no", "yes", "no", None, "no", "yes", "no", "no", "yes", "no"],
        "event": [True, False, True, False, False, True, True, False, False, True, True, False],
    }
)

for codec in ["none", "snappy", "zstd", "gzip", "lz4"]:
    table.to_parquet(HERE / f"small-{codec}.parquet", compression=None if codec == "none" else codec, index=False)

# What polars and DuckDB like to write: dictionary columns, narrow types, several row groups.
narrow = pa.Table.from_pandas(
    table.assign(age=table["age"].astype("int16"), smoker=table["smoker"].astype("category")), preserve_index=False
)
pq.write_table(narrow, HERE / "small-narrow.parquet", compression="zstd", row_group_size=5, version="2.6")

csv = table.copy()
csv["event"] = csv["event"].map({True: "true", False: "false"})
csv.to_csv(HERE / "small.csv", index=False, lineterminator="\n")

nested = pa.table({"age": [1, 2], "visits": [[1, 2], [3]]})
pq.write_table(nested, HERE / "nested.parquet")
