// The API reference of one key: Swagger UI over its openapi.json, whose requests go through the proxy.
import "swagger-ui-dist/swagger-ui.css";
import "./reference.css";
import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import { element } from "./page.js";

// The proxy gives out no token: a page must not hold one. Swagger UI shows an answer at its end, which a stream has not.
const NOT_SENT = ["/api/auth/", "/.well-known/", "/api/ddl/events/stream"];
// Their answers hold a secret, which a page must not hold either: the method of an address.
const SECRET = { "/api/ddl/events/webhooks": "post", "/api/ddl/events/webhooks/{id}/secret/rotate": "post" };
// The addresses that are of no entity, which come last.
const OWN_TAG = "rowgate";

export function draw(container, { proxy, document }) {
  const mount = element("div");
  container.replaceChildren(mount);
  return new Promise((resolve) => {
    SwaggerUI({
      domNode: mount,
      spec: shown(document),
      deepLinking: false,
      docExpansion: "list",
      defaultModelsExpandDepth: -1,
      displayRequestDuration: true,
      filter: true,
      queryConfigEnabled: false,
      // the curl line that is shown asks the API itself, without the key
      showMutatedRequest: false,
      tagsSorter: (a, b) => (a === OWN_TAG) - (b === OWN_TAG) || a.localeCompare(b),
      tryItOutEnabled: true,
      validatorUrl: null,
      requestInterceptor: (request) => proxied(request, proxy),
      onComplete: resolve,
    });
  });
}

// Without the keys, which the program adds. Examples of options stand in their descriptions: as values, all of them would be
// sent with the first request.
function shown(document) {
  const paths = Object.entries(document.paths)
    .filter(([path]) => !NOT_SENT.some((it) => path.startsWith(it)))
    .map(([path, { [SECRET[path]]: _secret, ...item }]) => [path, item])
    .filter(([, item]) => Object.keys(item).length > 0);
  const { securitySchemes, parameters, ...components } = document.components;
  components.parameters = Object.fromEntries(Object.entries(parameters).map(([name, it]) => [name, described(it)]));
  return { ...document, paths: Object.fromEntries(paths), components, security: [], servers: [{ url: location.origin }] };
}

function described(parameter) {
  if (parameter.required || parameter.in !== "query") return parameter;
  const { example, schema, ...rest } = parameter;
  const { default: byDefault, ...type } = schema;
  const more = [
    example === undefined ? "" : `Example: \`${example}\`. `,
    byDefault === undefined ? "" : `Default: \`${byDefault}\`. `,
  ];
  return { ...rest, schema: type, description: `${parameter.description}. ${more.join("")}`.trim() };
}

function proxied(request, proxy) {
  const { pathname, search } = new URL(request.url, location.origin);
  return { ...request, url: `${proxy}${pathname}${search}` };
}
