"""Makes a client of a document with openapi-python-client, and reads, pages, writes and calls with it.

Standard input: {"document", "work": a folder, "address", "key"}. Standard output: what it found.
"""

import datetime
import importlib
import json
import pathlib
import sys
from urllib.parse import parse_qs, urlparse

from openapi_python_client.cli import app

given = json.load(sys.stdin)
work = pathlib.Path(given["work"])
(work / "document.json").write_text(json.dumps(given["document"]))
# what formats the client is no part of it
(work / "config.yml").write_text("post_hooks: []\n")
flags = ["generate", "--path", f"{work}/document.json", "--config", f"{work}/config.yml", "--meta", "none"]
flags += ["--output-path", f"{work}/shop_client", "--fail-on-warning"]
try:
    app(flags, standalone_mode=False)
except SystemExit as end:
    assert not end.code, "the client was made with warnings"
sys.path.insert(0, str(work))

from shop_client import Client, models  # noqa: E402
from shop_client.types import UNSET  # noqa: E402

client = Client(base_url=given["address"], headers={"X-API-Key": given["key"]})


def call(tag, operation, **arguments):
    module = importlib.import_module(f"shop_client.api.{tag}.{operation}")
    return module.sync_detailed(client=client, **arguments)


order = call("orders", "read_orders", id=7)
assert order.status_code == 200 and order.parsed.value[0].id == 7, order
assert isinstance(order.parsed.value[0].placed_at, datetime.datetime), order
wrong = call("orders", "list_orders", filter_="region")
assert isinstance(wrong.parsed, models.RowgateProblem) and wrong.parsed.error.code == "InvalidFilter", wrong

orders, after = [], UNSET
while True:
    page = call("orders", "list_orders", filter_="state eq 'paid'", first=20, after=after, count=True).parsed
    orders += page.value
    if page.next_link is UNSET:
        break
    after = parse_qs(urlparse(page.next_link).query)["$after"][0]
assert 20 < len(orders) == page.count == len({it.id for it in orders}), (len(orders), page.count)

email, signed_up = "python@example.com", datetime.date(2026, 1, 31)
body = models.CustomersCreate(name="Pia", email=email, region="north", signed_up_on=signed_up)
created = call("customers", "create_customers", body=body)
row = created.parsed.value[0]
assert created.status_code == 201 and row.signed_up_on == signed_up, created
change = models.CustomersChange(rating=4.5)
changed = call("customers", "update_customers", id=row.id, body=change).parsed.value[0]
assert (changed.rating, changed.name) == (4.5, "Pia"), changed
replacement = models.CustomersReplace(name="Pia", email=email, region="south", signed_up_on=signed_up)
replaced = call("customers", "replace_customers", id=row.id, body=replacement).parsed.value[0]
assert (replaced.rating, replaced.region) == (None, "south"), replaced
assert call("customers", "delete_customers", id=row.id).status_code == 204
assert call("customers", "delete_customers", id=row.id).parsed.error.code == "RowNotFound"

sellers = call("best_sellers", "call_best_sellers", body=models.BestSellersCall(top=3))
assert sellers.status_code == 201 and len(sellers.parsed.value) == 3, sellers
lines = [{"product": 2, "quantity": 1}]
placed = call("place_order", "call_place_order", body=models.PlaceOrderCall(customer=1, lines=lines))
assert placed.status_code == 201 and isinstance(placed.parsed.value[0].order_id, int), placed
json.dump({"orders": len(orders), "titles": len(sellers.parsed.value)}, sys.stdout)
