// The query with which GraphiQL begins: three levels with an aggregate where the key has such relationships, else rows of
// its first entity.
import { entities } from "./entities.js";

export function first(document, tenant) {
  const readable = entities(document, tenant).filter((entity) => entity.operations.has("read"));
  const named = new Map(readable.map((entity) => [entity.name, entity]));
  const paths = readable.flatMap((entity) => joins(entity, named)).sort((a, b) => b.rank - a.rank);
  if (paths.length > 0) return joined(paths[0]);
  if (readable.length === 0) return "# This key reads no entity.\n";
  return `{\n  ${readable[0].name}(first: 5) {\n    items {\n${columns(readable[0], 6)}\n    }\n  }\n}\n`;
}

// A list within an entity, and what each of its rows leads to.
function joins(entity, named) {
  return entity.relationships.flatMap((many) => {
    const lines = named.get(many.to);
    if (!many.isMany || lines === undefined) return [];
    return lines.relationships
      .filter((one) => !one.isMany && one.to !== entity.name && named.has(one.to))
      .map((one) => {
        const parent = entity.relationships.find((it) => !it.isMany && named.has(it.to));
        return { entity, many, lines, one, leaf: named.get(one.to), parent, owner: named.get(parent?.to), rank: parent ? 2 : 1 };
      });
  });
}

function joined({ entity, many, lines, one, leaf, parent, owner }) {
  const group = groupField(entity);
  const above = parent ? `      ${parent.name} {\n${columns(owner, 8)}\n      }\n` : "";
  return `# Three levels and an aggregate: Ctrl-Enter
{
  ${entity.name}(first: 5) {
    items {
${columns(entity, 6, 3)}
${above}      ${many.name} {
        items {
${columns(lines, 10)}
          ${one.name} {
${columns(leaf, 12)}
          }
        }
      }
    }
    groupBy(fields: [${group}]) {
      fields { ${group} }
      aggregations { count }
    }
  }
}
`;
}

// The first fields that a person reads: neither the ends of a relationship nor random identifiers.
function columns(entity, indent, n = 2) {
  const plain = entity.fields.filter((it) => !it.name.endsWith("_id") && it.type !== "uuid" && /^[_A-Za-z]\w*$/.test(it.name));
  const chosen = (plain.length > 0 ? plain : entity.fields).slice(0, n);
  return chosen.map((field) => " ".repeat(indent) + field.name).join("\n");
}

// A type that the database declares, such as an enum, groups well; else the first text.
function groupField(entity) {
  const good = entity.fields.find((it) => it.type.includes(".")) ?? entity.fields.find((it) => it.type === "text");
  return (good ?? entity.fields[0]).name;
}
