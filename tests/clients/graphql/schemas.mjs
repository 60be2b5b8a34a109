// Holds introspections against graphql-js, and documents against their schemas.
// Arguments: the folder of the packages. Standard input: [{name, schema, documents: [{query, isValid}]}].
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [, , packages] = process.argv;
const { buildClientSchema, parse, validate, validateSchema } = createRequire(join(packages, "package.json"))("graphql");

const problems = [];
let documents = 0;
for (const { name, schema: introspection, documents: asked } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const schema = buildClientSchema(introspection);
    problems.push(...validateSchema(schema).map((error) => `${name}: ${error.message}`));
    for (const { query, isValid } of asked ?? []) {
      documents += 1;
      const errors = validate(schema, parse(query)).map((error) => error.message);
      if ((errors.length === 0) !== isValid) problems.push(`${name}: ${query}: ${errors.join("; ") || "is valid"}`);
    }
  } catch (error) {
    problems.push(`${name}: ${error.message}`);
  }
}
console.log(JSON.stringify({ documents, problems }));
