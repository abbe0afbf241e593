import { OPERATIONS, PROBLEMS, SCHEMAS } from "./api.js";

/** A schema of the OpenAPI document, as far as it is read. */
export interface Schema {
	$ref?: string;
	type?: string;
	enum?: unknown[];
	anyOf?: Schema[];
	properties?: Record<string, Schema>;
	required?: string[];
	additionalProperties?: boolean | Schema;
	items?: Schema;
	pattern?: string;
	minimum?: number;
	maximum?: number;
	minLength?: number;
	maxLength?: number;
	minItems?: number;
	maxItems?: number;
	maxProperties?: number;
}

/** An operation of the API, as far as a request of a test key goes. */
export interface Operation {
	name: string;
	method: string;
	path: string;
	query: string[];
	needsKey: boolean;
	refusesTestKeys: boolean;
	body: Schema | null;
	isBodyRequired: boolean;
}

export const operations: readonly Operation[] = OPERATIONS;
export const problems: Readonly<Record<string, { status: number; title: string; detail: string }>> = PROBLEMS;

/** Return what a reference names, or the schema itself. */
export function resolved(schema: Schema): Schema {
	const name = schema.$ref?.slice(schema.$ref.lastIndexOf("/") + 1);
	return name ? resolved((SCHEMAS as Record<string, Schema>)[name]!) : schema;
}
