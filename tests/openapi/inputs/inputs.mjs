// Generated requests to a running daemon, judged by Prism's validating proxy. inputs.mjs PROXY OPENAPI_JSON, prints TAP, a line for each operation.
//
// fast-check draws the requests from the document's schemas and examples: good ones, and ones with mistakes. Prism says of each whether the
// request, and its answer, are as the document describes; here they are put together:
//   - the answer has a documented status, and its type, headers and body are as described;
//   - what the document forbids is not accepted;
//   - what the document allows is not called malformed (400), but for what no schema can say. It may be refused for its meaning (409, 422).
//
// NODE_TOKEN: for routes of nodes. OPENAPI_RUNS (20): requests for each operation; OPENAPI_SEED (1). A failure prints the variables that repeat it.
import fc from 'fast-check'
import http from 'node:http'
import { readFileSync } from 'node:fs'

const proxy = new URL(process.argv[2])
const api = JSON.parse(readFileSync(process.argv[3]))
const seed = Number(process.env.OPENAPI_SEED ?? 1)
const runs = Number(process.env.OPENAPI_RUNS ?? 20)
const only = process.env.OPENAPI_ONLY

function resolve(node) {
  while (node?.$ref) node = node.$ref.slice(2).split('/').reduce((part, word) => part[word], api)
  return node
}

// ---------------------------------------------------------------- values

// No notice may leave this machine.
const TARGETS = ['http://127.0.0.1:9/hook', 'https://localhost:9/', 'mailto:nobody@localhost']

const anything = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 1.5, 1e300, 2 ** 53, '', ' ', '\u0000', '\u202e', '../..', '%', '\ud83d\ude00', 'x'.repeat(5000), [], {}),
  fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.string(), fc.array(fc.string(), { maxLength: 3 }),
  fc.dictionary(fc.string(), fc.integer(), { maxKeys: 3 }))

function bounds(schema) {
  const low = Math.max(schema.minimum ?? -1e9, (schema.exclusiveMinimum ?? -Infinity) + Number.EPSILON)
  const high = Math.min(schema.maximum ?? 1e9, schema.exclusiveMaximum ?? Infinity)
  return { min: low, max: Math.max(low, high) }
}

function textOf(schema) {
  if (schema.pattern?.startsWith('^(https?:')) return fc.constantFrom(...TARGETS)
  const sized = { minLength: schema.minLength ?? 0, maxLength: Math.min(schema.maxLength ?? 40, 40) }
  if (!schema.pattern || schema.pattern.startsWith('^[^')) return fc.string({ ...sized, unit: fc.constantFrom(...'abcXYZ019 ._-/,:=äß') })
  return fc.stringMatching(new RegExp(schema.pattern, 'u'), { size: 'small' })
    .filter(text => text.length >= sized.minLength && text.length <= (schema.maxLength ?? 4096))
}

function ofType(type, schema) {
  switch (type) {
    case 'null': return fc.constant(null)
    case 'boolean': return fc.boolean()
    case 'integer': {
      const { min, max } = bounds(schema)
      return fc.integer({ min: Math.ceil(min), max: Math.min(Math.floor(max), Number.MAX_SAFE_INTEGER) })
    }
    case 'number': return fc.double({ ...bounds(schema), noNaN: true })
    case 'string': return textOf(schema)
    case 'array': return fc.array(valueOf(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: Math.min(schema.maxItems ?? 3, 4) })
    case 'object': return objectOf(schema)
  }
}

function objectOf(schema) {
  const known = Object.entries(schema.properties ?? {}).map(([key, value]) => [key, valueOf(value)])
  const more = schema.additionalProperties?.type || schema.additionalProperties?.$ref
  return fc.tuple(
    fc.record(Object.fromEntries(known), { requiredKeys: schema.required?.filter(key => schema.properties?.[key]) ?? [] }),
    more ? fc.dictionary(fc.stringMatching(/^\/[a-z]{1,8}$/), valueOf(schema.additionalProperties), { maxKeys: 3 }) : fc.constant({}),
  ).map(parts => Object.assign({}, ...parts))
}

// Values that the schema allows, up to if, then and else: whether they are allowed in the end Prism decides.
const made = new Map()
function valueOf(schema) {
  schema = resolve(schema)
  if (!made.has(schema)) made.set(schema, makeValue(schema))
  return made.get(schema)
}
function makeValue(schema) {
  if (schema === true || !schema) return anything
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return fc.oneof(...choices.map(valueOf))
  if (schema.allOf) return fc.tuple(...schema.allOf.map(valueOf)).map(parts => Object.assign({}, ...parts))
  const types = [schema.type ?? (schema.properties ? 'object' : [])].flat()
  return types.length ? fc.oneof(...types.map(type => ofType(type, schema))) : anything
}

// ---------------------------------------------------------------- documents

// The places of a document, down to the members of objects.
function places(schema, at = []) {
  const { properties } = resolve(schema)
  return Object.entries(properties ?? {}).flatMap(([key, value]) => [[[...at, key], value], ...places(value, [...at, key])])
}

function put(document, [key, ...rest], value) {
  if (rest.length === 0 && value === undefined) delete document[key]
  else if (rest.length === 0) document[key] = value
  else {
    if (typeof document[key] !== 'object' || document[key] === null) document[key] = {}
    put(document[key], rest, value)
  }
}

function changes(schema, valueAt, most) {
  const all = places(schema)
  if (!all.length) return fc.constant([])
  return fc.array(fc.constantFrom(...all).chain(([at, part]) => fc.tuple(fc.constant(at), valueAt(part))), { maxLength: most })
}

// An example with members changed as the schema allows, then perhaps with mistakes; or all from the schema.
function bodyOf(media) {
  const { schema, examples } = media
  const good = Object.values(examples ?? {}).map(example => example.value).filter(value => value && typeof value === 'object')
  const changed = fc.tuple(good.length ? fc.constantFrom(...good) : valueOf(schema), changes(schema, valueOf, 4),
    fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: changes(schema, () => fc.option(anything, { nil: undefined }), 2) }),
    fc.option(fc.tuple(fc.stringMatching(/^[a-z_]{1,12}$/), anything), { freq: 8 }))
    .map(([example, allowed, mistakes, unknown]) => {
      const document = structuredClone(example)
      for (const [at, value] of [...allowed, ...mistakes]) put(document, at, value)
      if (unknown && document && !Array.isArray(document)) document[unknown[0]] = unknown[1]
      return document
    })
  return fc.oneof({ weight: 4, arbitrary: changed }, { weight: 1, arbitrary: valueOf(schema) }, { weight: 1, arbitrary: anything })
}

// ---------------------------------------------------------------- requests

// A header or a part of an address: no line ends, and no path that is another one.
const visible = fc.string({ unit: fc.constantFrom(...'abcXYZ0129 ._-,:;%"<>{}|\\^~*'), minLength: 1, maxLength: 30 })
  .filter(text => text.trim() === text && !/^\.+$/.test(text))

function parameterOf(parameter) {
  const examples = Object.values(parameter.examples ?? {}).map(example => String(example.value))
  const ids = parameter.in === 'path' && parameter.schema.type === 'integer' ? [fc.integer({ min: 1, max: 9 }).map(String)] : []
  const good = valueOf(parameter.schema).map(String).filter(text => text !== '' && /^[\x20-\x7e]*$/.test(text) && text.trim() === text && !/^\.+$/.test(text))
  return fc.oneof(...examples.map(example => fc.constant(example)), ...ids, good, visible)
}

function requestOf(path, operation) {
  const parameters = operation.parameters.map(resolve)
  const given = parameters.map(parameter => parameter.required ? parameterOf(parameter) : fc.option(parameterOf(parameter), { nil: undefined, freq: 2 }))
  const media = operation.requestBody?.content['application/json']
  return fc.tuple(fc.tuple(...given), media ? bodyOf(media) : fc.constant(undefined)).map(([values, body]) => {
    const headers = {}, query = []
    let target = path
    values.forEach((value, i) => {
      const { in: where, name } = parameters[i]
      if (value === undefined) return
      if (where === 'path') target = target.replace(`{${name}}`, encodeURIComponent(value))
      else if (where === 'query') query.push(`${name}=${encodeURIComponent(value)}`)
      else headers[name] = value
    })
    return { target: target + (query.length ? '?' + query.join('&') : ''), headers, body }
  })
}

// "[{...}, {...}]"; of many: "Too many violations! [{...}, {...}, {.."
const violationsOf = header => [...header.matchAll(/\{"location":.*?"message":"(?:[^"\\]|\\.)*"\}/g)].map(([one]) => JSON.parse(one))

const agent = new http.Agent({ keepAlive: true })
function send(method, { target, headers, body }, token) {
  const text = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((done, failed) => {
    const request = http.request(proxy, { method, path: target, agent, maxHeaderSize: 1 << 20,
      headers: { ...headers, ...(token && { Authorization: `Bearer ${token}` }), ...(text && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }) } }, answer => {
      const parts = []
      answer.on('data', part => parts.push(part))
      answer.on('end', () => done({ status: answer.statusCode, type: answer.headers['content-type'] ?? '', text: Buffer.concat(parts).toString(),
        violations: violationsOf(answer.headers['sl-violations'] ?? '') }))
      answer.on('error', failed)
    })
    request.setTimeout(60000, () => request.destroy(new Error('no answer within 60 s')))
    request.on('error', failed)
    request.end(text)
  })
}

// What no schema can say: names of keys in where and group, parameters that exclude each other, U+0000 in any text.
const OF_MEANING = /unknown job key|groups are sorted by|groups have no pages|JSON_ALLOW_NUL/
const counts = {}
function judge(operation, answer) {
  const said = of => answer.violations.filter(({ location }) => location[0] === of).map(({ location, message }) => `${location.join('.')}: ${message}`)
  const wrong = said('response'), forbidden = said('request')
  counts[answer.status] = (counts[answer.status] ?? 0) + 1
  if (!(answer.status in operation.responses)) wrong.push(`the status ${answer.status} is not documented`)
  if (answer.status < 300 && forbidden.length) wrong.push('accepted, though the document forbids it:', ...forbidden)
  if (answer.status === 400 && !forbidden.length && !OF_MEANING.test(answer.text)) wrong.push('called malformed, though the document allows it')
  return wrong.length ? [...wrong, `answer: ${answer.status} ${answer.type} ${answer.text.slice(0, 600)}`] : []
}

// ---------------------------------------------------------------- all operations

async function check(number, method, path, operation) {
  const name = `${operation.operationId}: ${method.toUpperCase()} ${path}`
  const property = fc.asyncProperty(requestOf(path, operation), async request => {
    const wrong = judge(operation, await send(method.toUpperCase(), request, operation['x-role'] === 'node' && process.env.NODE_TOKEN))
    if (wrong.length) throw new Error(wrong.join('\n'))
  })
  const found = await fc.check(property, { seed, numRuns: runs, path: only ? process.env.OPENAPI_PATH : undefined, interruptAfterTimeLimit: 60000 })
  console.log(`${found.failed ? 'not ok' : 'ok'} ${number} - ${name}`)
  if (!found.failed) return true
  const { target, headers, body } = found.counterexample[0]
  const lines = [`repeat it by OPENAPI_ONLY=${operation.operationId} OPENAPI_SEED=${found.seed} OPENAPI_PATH=${found.counterexamplePath}`,
    `${method.toUpperCase()} ${target} ${JSON.stringify(headers)} ${JSON.stringify(body) ?? ''}`.slice(0, 3000), found.errorInstance?.message ?? found.error]
  console.log(lines.join('\n').replace(/^/gm, '#   '))
  return false
}

const operations = Object.entries(api.paths).flatMap(([path, item]) => Object.entries(item).map(([method, operation]) => [method, path, operation]))
  .filter(([, , operation]) => !only || operation.operationId === only)
let number = 0
// What removes comes last.
for (const [method, path, operation] of operations.sort(([a], [b]) => (a === 'delete') - (b === 'delete')))
  if (!await check(++number, method, path, operation)) process.exitCode = 1
console.log(`# seed ${seed}, ${runs} requests for each operation; statuses: ${Object.entries(counts).map(([status, count]) => `${status} ${count}`).join(', ')}`)
console.log(`1..${number}`)
agent.destroy()
