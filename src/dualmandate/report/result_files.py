"""What an audit counted, as files: one row a place, places by their size, and inside the records that were found."""

from __future__ import annotations

import io
from collections import Counter

from dualmandate.audit.finding import Label
from dualmandate.audit.run import Audit


def result_files(audit: Audit, label: Label) -> dict[str, bytes]:
    """Each table of results as CSV and as Parquet, by the names of the files; those of single records inside alone."""
    import pyarrow
    from pyarrow import csv, parquet

    found, often = dict[str, bytes](), Counter[str]()
    for finding in audit.findings if label == "internal" else audit.labeled("public"):
        for each in finding.tables:
            if (each.inside and label == "public") or not each.columns:
                continue
            often[each.name] += 1
            name = each.name if often[each.name] == 1 else f"{each.name}-{often[each.name]}"
            table = pyarrow.table({column: list(values) for column, values in each.columns.items()})
            for kind, write in (("csv", csv.write_csv), ("parquet", parquet.write_table)):
                content = io.BytesIO()
                write(table, content)
                found[f"{name}.{kind}"] = content.getvalue()
    return found
