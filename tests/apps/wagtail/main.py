"""Wagtail beside Rowgate: migrates its database, writes to it all the time, copies a table out and in.

main.py migrate: runs the migrations of the packages with Django's own command.
main.py write [FILE]: changes and reads back, until standard input is closed. FILE keeps the row counts of each statement: it is
made when it is not there, and compared with when it is.
main.py copy: COPY of a table by the role of the application.

PYTHONPATH holds the packages; the database is that of PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD and APP_SCHEMA.
"""

import json
import os
import sys
import time

sys.dont_write_bytecode = True
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"

import django  # noqa: E402

django.setup()


def migrate():
    from django.core.management import call_command
    from django.db import connection

    started = time.monotonic()
    call_command("migrate", interactive=False, verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_tables where schemaname = current_schema()")
        n_tables = cursor.fetchone()[0]
    print(json.dumps({"tables": n_tables, "seconds": round(time.monotonic() - started, 1)}))


def write(counts=None):
    from client import Client
    from watch import run

    return run(Client, counts)


def copy():
    from copying import TABLE, copied

    try:
        told = copied()
    except Exception as error:
        told = {"table": TABLE, "errors": [f"{type(error).__name__}: {str(error).strip()}"], "wrong_counts": []}
    print(json.dumps(told))
    return 1 if told["errors"] or told["wrong_counts"] else 0


if __name__ == "__main__":
    command, *given = sys.argv[1:] or ["help"]
    commands = {"migrate": migrate, "write": write, "copy": copy}
    if command not in commands:
        sys.exit(__doc__)
    sys.exit(commands[command](*given))
