// Reads the events of a table with a browser's EventSource, in the console's page, until it has the row `last`. EventSource gives up for good when it
// is answered with anything but 200, as by a console that has not read its keys yet (404): the page then begins another behind the last event.
// Arguments: the folder of the packages, a folder to work in, the address, a tenant/key, Chromium. Standard input as that of resume.mjs.
// It prints what the page was sent, as JSON.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , packages, work, url, key, executablePath] = process.argv;
const given = JSON.parse(readFileSync(0, "utf8"));
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");

// The program is a child of this test, and containers that run tests give Chromium no sandbox of its own.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await (await browser.newContext()).newPage();
await page.exposeFunction("half", () => writeFileSync(join(work, "browser"), ""));
await page.goto(url);
const events = await page.evaluate(
  ({ key, after, half, last }) =>
    new Promise((end) => {
      const events = [];
      let nGivenUp = 0;
      const read = (behind) => {
        const stream = `/console/proxy/${key}/api/ddl/events/stream?tables=accounts&after=${behind}`;
        const source = new EventSource(stream);
        source.addEventListener("change", ({ data, lastEventId }) => {
          const { EventId, op, key } = JSON.parse(data);
          events.push({ id: lastEventId, op, row: key.id });
          if (lastEventId !== EventId) end(`${EventId} has the id ${lastEventId}`);
          if (key.id === half) window.half();
          if (key.id !== last) return;
          source.close();
          end(events);
        });
        source.onerror = () => {
          if (source.readyState !== EventSource.CLOSED) return;
          nGivenUp += 1;
          if (nGivenUp === 100) end("the browser gave the stream up a hundred times");
          setTimeout(read, 100, events.at(-1)?.id ?? after);
        };
      };
      read(after);
    }),
  { key, ...given },
);
await browser.close();
console.log(JSON.stringify({ browser: events }));
