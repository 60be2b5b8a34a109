// Holds introspection against graphql-js, in all its forms, and prints the schema and what is wrong with it.
// Arguments: the folder of the packages, a folder to work in, the address, a key.
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , packages, , url, key] = process.argv;
const { buildClientSchema, getIntrospectionQuery, printSchema, validateSchema } = createRequire(join(packages, "package.json"))("graphql");

async function ask(query) {
  const headers = { "content-type": "application/json", "x-api-key": key };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify({ query }) });
  return answer.json();
}

const options = { descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true, inputValueDeprecation: true };
const problems = [];
let schema;
for (const of of [{}, options]) {
  const { data, errors } = await ask(getIntrospectionQuery(of));
  if (errors) problems.push(...errors.map((error) => error.message));
  else {
    schema = buildClientSchema(data);
    problems.push(...validateSchema(schema).map((error) => error.message));
  }
}
console.log(JSON.stringify({ problems, sdl: schema ? printSchema(schema) : "" }));
