"""Runs a client round by round, and compares how many rows each statement said it touched with what it said before.

Standard output: each second {"writes", "errors", "wrong_counts"} since the line before, with "compared", whether there is
something to compare with by now; at the end {"done", "rounds", "compared"} and how many writes, errors and wrong counts in all.
"""

import json
import os
import re
import sys
import threading
import time
import traceback

from django.db import connection

# The first rounds fill the caches of Django; the next ones are what later ones are compared with.
WARM_UP = 3
LEARNING = 8
TOLD = 5
WRITES = ("INSERT", "UPDATE", "DELETE", "COPY", "MERGE")


class Watch:
    """Knows for each step and statement the row counts that are as they should be."""

    def __init__(self, path):
        self.path = path
        self.known = {}
        self.learning = True
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.known = {key: set(counts) for key, counts in json.load(file).items()}
            self.learning = False
        self.warm = False
        self.step = ""
        self.n_writes = 0
        self.errors = []
        self.wrong = []
        self.done = threading.Event()

    def statement(self, execute, sql, params, many, context):
        """Django calls this around every statement."""
        result = execute(sql, params, many, context)
        verb = sql.lstrip("( ").split(None, 1)[0].upper() if sql else ""
        if verb in WRITES:
            self.n_writes += 1
        if verb in WRITES or verb == "SELECT":
            # names of savepoints and the length of lists are no part of a statement
            shape = re.sub(r"(%s(, )?)+", "%s", sql)
            self.counted(f"{self.step}: {shape}", context["cursor"].rowcount, verb)
        return result

    def counted(self, key, n_rows, verb):
        # what tidies up after an error is compared with nothing
        if not self.warm or self.step == "repair":
            return
        if self.learning:
            self.known.setdefault(key, set()).add(n_rows)
            return
        known = self.known.get(key)
        if known is None:
            # a cache that is filled anew reads what it read long ago
            if verb in WRITES:
                self.wrong.append(f"never sent before: {key[:400]}")
        elif n_rows not in known and (verb in WRITES or len(known) == 1):
            self.wrong.append(f"{key[:400]}: {n_rows} rows instead of {sorted(known)}")

    def compared(self):
        return self.warm and not self.learning

    def expect(self, what, found, expected):
        if found != expected:
            self.wrong.append(f"{self.step}: {what}: {found!r} instead of {expected!r}")

    def failed(self, error):
        where = traceback.extract_tb(error.__traceback__)[-1]
        self.errors.append(f"{self.step}: {type(error).__name__}: {str(error)[:300].strip()} ({where.name})")

    def learned(self):
        self.learning = False
        if self.path:
            beside = f"{self.path}.{os.getpid()}"
            with open(beside, "w", encoding="utf-8") as file:
                json.dump({key: sorted(counts) for key, counts in self.known.items()}, file, indent=1)
            os.replace(beside, self.path)


def run(client_of, path):
    watch = Watch(path)
    client = client_of(watch)
    closed = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), closed.set()), daemon=True).start()

    # an error of the first steps is one of the set-up, and ends the program
    client.prepare()
    told = {"writes": 0, "errors": 0, "wrong_counts": 0}
    rounds = 0
    seconds = threading.Thread(target=every_second, args=(watch, told), daemon=True)
    seconds.start()
    with connection.execute_wrapper(watch.statement):
        while not closed.is_set():
            for step in client.steps():
                watch.step = step.__name__
                try:
                    step()
                except Exception as error:
                    watch.failed(error)
                    watch.step = "repair"
                    client.repair()
                    # the steps after it want what it made
                    break
            rounds += 1
            watch.warm = WARM_UP <= rounds
            if watch.learning and WARM_UP + LEARNING <= rounds:
                watch.learned()
    watch.done.set()
    seconds.join()
    tell(watch, told)
    print(json.dumps({
        "done": True, "rounds": rounds, "compared": watch.compared(), "writes": watch.n_writes,
        "errors": len(watch.errors), "wrong_counts": len(watch.wrong),
    }), flush=True)
    return 1 if watch.errors or watch.wrong else 0


def every_second(watch, told):
    while not watch.done.wait(1):
        tell(watch, told)


def tell(watch, told):
    errors, wrong = watch.errors[told["errors"]:], watch.wrong[told["wrong_counts"]:]
    print(json.dumps({
        "compared": watch.compared(), "writes": watch.n_writes - told["writes"], "errors": errors[:TOLD],
        "wrong_counts": wrong[:TOLD],
    }), flush=True)
    told.update(writes=watch.n_writes, errors=len(watch.errors), wrong_counts=len(watch.wrong))
