// A query's rows as a file: the job is started, watched, and its file downloaded.
import { ask, button, element, get } from "./page.js";

const EXPORTS = "/api/ddl/exports";
const REFRESH_MS = 500;
const FORMATS = { csv: "CSV", parquet: "Parquet", jsonl: "JSON lines" };

// The control, or nothing where the key's API has no exports. `query` gives the text, `say` takes what is to be read, `isShown` whether
// the view is still looked at.
export function control(document, proxy, { query, say, isShown }) {
  if (!(EXPORTS in document.paths)) return [];
  const options = Object.entries(FORMATS).map(([value, name]) => element("option", { value }, name));
  const format = element("select", { "aria-label": "Format" }, ...options);
  let job;
  const start = async () => {
    cancel.hidden = false;
    run.disabled = true;
    try {
      job = `${proxy}${EXPORTS}/${encodeURIComponent((await ask("POST", `${proxy}${EXPORTS}`, { query: query(), format: format.value })).id)}`;
      const done = await finished();
      if (done !== undefined) download(done);
    } catch (error) {
      if (isShown()) say(error.message, "bad");
    }
    job = undefined;
    cancel.hidden = true;
    run.disabled = false;
  };
  // The job once it has a file; nothing where it was canceled or nobody looks any more.
  const finished = async () => {
    while (isShown()) {
      const now = await get(job);
      if (now.status === "failed") throw new Error(now.error.message);
      if (now.status === "cancelled") return say("The export was canceled.");
      if (now.status === "succeeded") return now;
      say(now.status === "queued" ? `The export waits; ${now.queuePosition ?? 0} are before it.` : `${now.rows} rows are exported.`);
      await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
    }
  };
  const download = ({ url, rows, capped }) => {
    say(`${rows === 1 ? "1 row is" : `${rows} rows are`} exported${capped ? "; there are more" : ""}.`);
    const link = element("a", { href: url, download: "" });
    link.click();
  };
  const run = button("Export", start);
  const cancel = button("Cancel", () => job && ask("DELETE", job).catch((error) => say(error.message, "bad")));
  cancel.hidden = true;
  return [format, run, cancel];
}
