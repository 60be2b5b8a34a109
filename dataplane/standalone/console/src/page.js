// What every view uses: elements without markup in strings, and JSON from the program.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

export function get(address) {
  return ask("GET", address);
}

// With a body of JSON, if any.
export async function ask(method, address, body) {
  let response;
  const options = { method };
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  try {
    response = await fetch(address, options);
  } catch {
    throw new Error("Rowgate does not answer. Does it still run?");
  }
  const body = await response.json().catch(() => undefined);
  if (response.ok) return body;
  if (response.status === 401) throw new Error("This key does not work any more.");
  throw new Error(body?.error?.message ?? `Rowgate answered ${response.status}.`);
}
