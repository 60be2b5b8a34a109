// What every view uses: elements without markup in strings, and JSON from the program.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

export function button(text, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

export const get = (address) => ask("GET", address);

// Without a body where none is given. `read` makes JSON of the answer.
export async function ask(method, address, body, read = (response) => response.json()) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch(address, { method, headers, body: JSON.stringify(body) });
  } catch {
    throw new Error("Rowgate does not answer. Does it still run?");
  }
  const answer = await read(response).catch(() => undefined);
  if (response.ok) return answer;
  if (response.status === 401) throw new Error("This key does not work any more.");
  throw new Error(answer?.error?.message ?? `Rowgate answered ${response.status}.`);
}
