// Opens WebSockets that say what they are told to, well or badly.
// Arguments: the folder of the packages, a folder, the address. Standard input: a list of JSON objects: `protocol` and `headers` to
// open one with, `messages` to send, `count` of messages to wait for; without it, for its end.
// It prints for each what came: `status` of a handshake that is refused, `messages`, `code` and `reason` of a close.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , packages, , url] = process.argv;
const WebSocket = createRequire(join(packages, "package.json"))("ws");

const run = ({ protocol, headers, messages, count }) =>
  new Promise((end) => {
    const came = [];
    const socket = new WebSocket(url, protocol, { headers });
    socket.on("unexpected-response", (_, response) => (end({ status: response.statusCode }), socket.terminate()));
    socket.on("error", () => {});
    socket.on("open", () => messages.forEach((message) => socket.send(message)));
    socket.on("message", (data) => {
      came.push(JSON.parse(data));
      if (came.length === count) {
        end({ messages: came });
        socket.close();
      }
    });
    socket.on("close", (code, reason) => end({ messages: came, code, reason: reason.toString() }));
  });

const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(await Promise.all(cases.map(run))));
process.exit(0);
