"""Holds documents to the rules of OpenAPI 3.1, and each of their examples to the schema that it stands in.

Standard input: {name: document}. Standard output: {name: how many examples were looked at}.
"""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

looked = {}
for name, document in json.load(sys.stdin).items():
    errors = [f"{list(error.path)}: {error.message}" for error in OpenAPIV31SpecValidator(document).iter_errors()]
    assert not errors, f"{name}: {errors}"
    components = document["components"]
    n_examples = 0

    def holds(schema, value, where):
        global n_examples
        whole = {"allOf": [schema], "components": components}
        wrong = [error.message for error in Draft202012Validator(whole).iter_errors(value)]
        assert not wrong, f"{name}: {where}: {wrong}"
        n_examples += 1

    for schema_name, schema in components["schemas"].items():
        for value in schema.get("examples", []):
            holds({"$ref": f"#/components/schemas/{schema_name}"}, value, schema_name)
    for status, response in components["responses"].items():
        media = response["content"]["application/json"]
        for code, example in media["examples"].items():
            holds(media["schema"], example["value"], f"{status} {code}")
    parameters = list(components["parameters"].values())
    for item in document["paths"].values():
        parameters += item.get("parameters", [])
    for parameter in parameters:
        if "example" in parameter:
            holds(parameter["schema"], parameter["example"], parameter["name"])
    looked[name] = n_examples
json.dump(looked, sys.stdout)
