"""COPY of wagtailredirects_redirect out and in, as a dump and a restore of the application's role would."""

import os
import time

from django.db import connection
from wagtail.models import Site

N_ROWS = 1000
TABLE = "wagtailredirects_redirect"
COLUMNS = (
    "old_path, site_id, redirect_page_id, redirect_link, is_permanent, automatically_created, created_at, redirect_page_route_path"
)


def copied():
    """What was counted: out of the whole table, out of our own rows, deleted, in again, and read back."""
    prefix = f"/copied-{os.getpid()}-{int(time.time())}/"
    site = Site.objects.get(is_default_site=True)
    connection.ensure_connection()
    postgres = connection.connection
    count = f"select count(*) from {TABLE} where old_path like %s"
    with postgres.transaction(), postgres.cursor() as cursor:
        # pg_dump asks for an error instead of fewer rows
        cursor.execute("set local row_security = off")
        cursor.execute("set transaction isolation level repeatable read")
        cursor.execute(f"select count(*) from {TABLE}")
        n_rows = cursor.fetchone()[0]
        whole = b"".join(out(cursor, f"copy {TABLE} ({COLUMNS}) to stdout"))
        n_whole = whole.count(b"\n")

    lines = [f"{prefix}{i}\t{site.pk}\t\\N\t/to/{i}\tt\tf\t2026-01-01 00:00:00+00\t\n" for i in range(N_ROWS)]
    with postgres.transaction(), postgres.cursor() as cursor:
        n_first = into(cursor, "".join(lines).encode())
    with postgres.transaction(), postgres.cursor() as cursor:
        mine = b"".join(out(cursor, f"copy (select {COLUMNS} from {TABLE} where old_path like '{prefix}%') to stdout"))
        cursor.execute(f"delete from {TABLE} where old_path like %s", [prefix + "%"])
        n_deleted = cursor.rowcount
        n_again = into(cursor, mine)
        cursor.execute(count, [prefix + "%"])
        n_read = cursor.fetchone()[0]
    with postgres.transaction(), postgres.cursor() as cursor:
        cursor.execute(f"delete from {TABLE} where old_path like %s", [prefix + "%"])
        n_cleared = cursor.rowcount
    counts = [n_first, mine.count(b"\n"), n_deleted, n_again, n_read, n_cleared]
    wrong = [f"{counts} instead of {N_ROWS} each"] if set(counts) != {N_ROWS} else []
    if n_whole != n_rows:
        wrong.append(f"COPY gave {n_whole} of {n_rows} rows")
    return {"table": TABLE, "rows": n_rows, "out": n_whole, "in": n_first + n_again, "errors": [], "wrong_counts": wrong}


def out(cursor, statement):
    with cursor.copy(statement) as rows:
        return [bytes(part) for part in rows]


def into(cursor, text):
    with cursor.copy(f"copy {TABLE} ({COLUMNS}) from stdin") as rows:
        rows.write(text)
    return cursor.rowcount
