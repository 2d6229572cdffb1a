// A line of a form that holds JSON.
import { Refusal } from './api.ts'

/** The value. Throws Refusal that names the line. */
export function parseJsonField(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const hint = `must be JSON: ${error instanceof Error ? error.message : ''}`
    throw new Refusal(400, 'Request validation failed', [{ fieldName: name, hint }])
  }
}
