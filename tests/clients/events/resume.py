"""Reads the events of a table with httpx-sse, as resume.mjs does with clients of JavaScript.

Arguments: a folder to work in, the address, a key. Standard input as that of resume.mjs; PYTHONPATH holds httpx-sse.
"""

import json
import pathlib
import sys
import time

import httpx
from httpx_sse import connect_sse

work, url, key = sys.argv[1:]
given = json.load(sys.stdin)
events, last_id, pause = [], given["after"], 1.0
with httpx.Client(timeout=httpx.Timeout(30)) as client:
    while not events or events[-1]["row"] != given["last"]:
        headers = {"x-api-key": key, "last-event-id": last_id}
        try:
            with connect_sse(client, "GET", f"{url}/api/ddl/events/stream?tables=accounts", headers=headers) as source:
                source.response.raise_for_status()
                for message in source.iter_sse():
                    last_id = message.id or last_id
                    pause = message.retry / 1000 if message.retry is not None else pause
                    if message.event != "change":
                        continue
                    event = json.loads(message.data)
                    events.append({"id": event["EventId"], "op": event["op"], "row": event["key"]["id"]})
                    if event["key"]["id"] == given["half"]:
                        pathlib.Path(work, "httpx-sse").touch()
                    if event["key"]["id"] == given["last"]:
                        break
        except httpx.TransportError:
            time.sleep(pause)
print(json.dumps({"httpx-sse": events}))
