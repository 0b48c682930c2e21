// schema/openapi.json by redocly's recommended rules: no error and no warning. That the examples fit their schemas is checked by tests/api/http/contract.sh,
// with a validator that knows unevaluatedProperties.
import { createConfig, lint } from "@redocly/openapi-core";

const config = await createConfig({ extends: ["recommended"], rules: { "no-invalid-media-type-examples": "off", "no-invalid-parameter-examples": "off" } });
const problems = await lint({ ref: process.argv[2], config });
for (const { severity, ruleId, message, location } of problems) console.log(`${severity} ${ruleId} ${location[0]?.pointer ?? ""}: ${message}`);
process.exitCode = problems.length ? 1 : 0;
