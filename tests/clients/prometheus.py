"""Parses a page of metrics with the official client's parser, as a scraper would, and checks what a parser lets through.

Standard input: the page. Standard output: [[family, type, [[sample, labels, value]]]].
"""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

page = sys.stdin.read()
families = list(text_string_to_metric_families(page))
names = [line.split(" ")[2] for line in page.splitlines() if line.startswith("# TYPE ")]
assert len(names) == len(set(names)), "a family is told twice"
assert page.endswith("\n"), "the last line has no end"

seen = set()
for family in families:
    assert family.documentation, f"{family.name} has no HELP"
    assert family.type in ("counter", "gauge", "histogram"), f"{family.name} has no TYPE"
    buckets = {}
    for sample in family.samples:
        key = (sample.name, tuple(sorted(sample.labels.items())))
        assert key not in seen, f"{key} is told twice"
        seen.add(key)
        if sample.name.endswith("_bucket"):
            labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
            buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
    for labels, rows in buckets.items():
        assert rows == sorted(rows) and [n for _, n in rows] == sorted(n for _, n in rows), f"{family.name}{labels}"
        count = [s.value for s in family.samples if s.name.endswith("_count") and tuple(sorted(s.labels.items())) == labels]
        assert rows[-1][0] == float("inf") and count == [rows[-1][1]], f"{family.name}{labels}"

json.dump(
    [[family.name, family.type, [[s.name, s.labels, s.value] for s in family.samples]] for family in families],
    sys.stdout,
)
