"""What a log of faults comes to, as a table."""

from __future__ import annotations

from collections import defaultdict


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _late(lines: list[dict], early: bool = False) -> str:
    late = [line["late"] for line in lines if line["late"] is not None and line["early"] == early]
    return f"{max(late):+.2f} s" if late else "-"


def summary(lines: list[dict]) -> str:
    faults = [line for line in lines if not line.get("missed", True)]
    runs = [line for line in lines if "value" in line]
    by_kind = defaultdict(list)
    for line in faults:
        by_kind[line["kind"]].append(line)
    rows = [["fault", "times", "while starting", "while ending", "survivors", "named the operation",
             "last, after the deadline", "while starting", "wrong"]]
    for kind, those in sorted(by_kind.items()):
        rows.append([kind, str(len(those)), str(sum(line["early"] for line in those)),
                     str(sum(line["ending"] for line in those)), str(sum(line["survivors"] for line in those)),
                     str(sum(line["named"] for line in those)),
                     _late(those), _late(those, early=True), str(sum(bool(line["wrong"]) for line in those))])
    text = _table(rows)
    rows = [["launcher", "faults", "runs", "with the same bits", "last, after the deadline", "wrong"]]
    for name in dict.fromkeys(line["launcher"] for line in lines):
        those = [line for line in faults if line["launcher"] == name]
        ends = [line for line in runs if line["launcher"] == name]
        rows.append([name, str(len(those)), str(len(ends)), str(sum(bool(line["same"]) for line in ends)),
                     _late([line for line in those if line["kind"] in ("kill", "stop", "link")]),
                     str(sum(bool(line["wrong"]) for line in those + ends))])
    text += "\n\n" + _table(rows)
    wrong = [f"run {line['run']}, {line['launcher']}, {line.get('kind', 'end')}: {line['wrong']}"
             for line in lines if line["wrong"]]
    return text + "".join("\n" + line for line in wrong)
