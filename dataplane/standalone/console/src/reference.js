// The API reference of one key: Swagger UI over its openapi.json, whose requests go through the proxy.
import "swagger-ui-dist/swagger-ui.css";
import "./reference.css";
import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import { element } from "./page.js";

// The proxy gives out no token: a page must not hold one.
const NOT_PROXIED = ["/api/auth/", "/.well-known/"];

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
      persistAuthorization: false,
      queryConfigEnabled: false,
      // the curl line that is shown asks the API itself, without the key
      showMutatedRequest: false,
      tryItOutEnabled: true,
      validatorUrl: null,
      requestInterceptor: (request) => proxied(request, proxy),
      onComplete: resolve,
    });
  });
}

// Without the keys, which the program adds.
function shown(document) {
  const paths = Object.entries(document.paths).filter(([path]) => !NOT_PROXIED.some((it) => path.startsWith(it)));
  const { securitySchemes, ...components } = document.components;
  return { ...document, paths: Object.fromEntries(paths), components, security: [], servers: [{ url: location.origin }] };
}

function proxied(request, proxy) {
  const { pathname, search } = new URL(request.url, location.origin);
  return { ...request, url: `${proxy}${pathname}${search}` };
}
