import { resolved, type Schema } from "./document.js";

/** What is wrong with one field of a request. */
export interface FieldProblem {
	pointer: string;
	code: string;
	detail: string;
}

const NAMES: Record<string, string> = {
	object: "an object",
	array: "a list in brackets",
	string: "a text",
	boolean: "true or false",
	null: "null",
};

export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return a key as a token of a JSON Pointer. */
export function token(key: string): string {
	return key.slice(0, 128).replaceAll("~", "~0").replaceAll("/", "~1");
}

/**
 * Return where a value differs from a schema of the API, with the API's codes.
 *
 * Lists of values that the API also takes by other names, such as channels, aren't compared: each has
 * a check of its own, as in the API.
 */
export function findProblems(value: unknown, given: Schema, pointer = ""): FieldProblem[] {
	const schema = resolved(given);
	if (schema.anyOf) return inUnion(value, schema.anyOf, pointer);
	const wrong = [{ pointer, code: "wrong_type", detail: `Expected ${kinds([schema])}.` }];
	if (!schema.type) return schema.enum && !schema.enum.includes(value) ? wrong : [];
	if (!isOf(value, schema.type)) return wrong;
	if (isObject(value)) return inObject(value, schema, pointer);
	if (Array.isArray(value)) {
		const inner = value.flatMap((item, index) => findProblems(item, schema.items ?? {}, `${pointer}/${index}`));
		return inner.length ? inner : inRange(value.length, schema.minItems, schema.maxItems, pointer);
	}
	if (typeof value === "number") return inRange(value, schema.minimum, schema.maximum, pointer);
	if (typeof value !== "string") return [];
	const pattern = schema.pattern?.replace("\\A", "^").replace("\\Z", "$");
	const isUnlike = pattern !== undefined && !new RegExp(pattern, "u").test(value);
	const found = inRange([...value].length, schema.minLength, schema.maxLength, pointer);
	return isUnlike ? [...found, { pointer, code: "wrong_type", detail: `Expected a text that matches ${pattern}.` }] : found;
}

function inUnion(value: unknown, options: Schema[], pointer: string): FieldProblem[] {
	const found = options.map((one) => findProblems(value, one, pointer));
	if (found.some((problems) => !problems.length)) return [];
	// The problems within the option that is meant say more than that none fits.
	const inner = found.flat().filter((one) => one.pointer !== pointer || one.code !== "wrong_type");
	if (inner.length) return inner;
	const wanted = options.filter((one) => one.type !== "null").map(resolved);
	return [{ pointer, code: "wrong_type", detail: `Expected ${kinds(wanted)}.` }];
}

function inObject(value: Json, schema: Schema, pointer: string): FieldProblem[] {
	const { properties = {}, additionalProperties: others = true, required = [] } = schema;
	const found: FieldProblem[] = [];
	for (const [name, item] of Object.entries(value)) {
		const place = `${pointer}/${token(name)}`;
		if (Object.hasOwn(properties, name)) found.push(...findProblems(item, properties[name]!, place));
		else if (others === false) found.push({ pointer: place, code: "unknown_field", detail: "Unknown field." });
		else if (others !== true) found.push(...findProblems(item, others, place));
	}
	for (const name of required) {
		if (!Object.hasOwn(value, name)) found.push({ pointer: `${pointer}/${name}`, code: "required", detail: "The field is required." });
	}
	return found.length ? found : inRange(Object.keys(value).length, undefined, schema.maxProperties, pointer);
}

function inRange(size: number, least: number | undefined, most: number | undefined, pointer: string): FieldProblem[] {
	const found: FieldProblem[] = [];
	if (least !== undefined && size < least) found.push({ pointer, code: "out_of_range", detail: `Expected at least ${least}.` });
	if (most !== undefined && size > most) found.push({ pointer, code: "out_of_range", detail: `Expected at most ${most}.` });
	return found;
}

function isOf(value: unknown, kind: string): boolean {
	if (kind === "null") return value === null;
	if (kind === "array") return Array.isArray(value);
	if (kind === "object") return isObject(value);
	return kind === "integer" ? Number.isInteger(value) : typeof value === kind;
}

function kinds(schemas: Schema[]): string {
	const names = schemas.map((one) =>
		one.enum && !one.type ? one.enum.map((value) => `\`${String(value)}\``).join(" or ") : (NAMES[one.type ?? ""] ?? "a number"),
	);
	return [...new Set(names)].join(" or ");
}
