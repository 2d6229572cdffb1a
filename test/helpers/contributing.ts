// The endpoint that CONTRIBUTING.md adds step by step.

/** The diffs of a document, one after the other: a patch. */
export const readDiff = (document: string): string =>
  [...document.matchAll(/^```diff\n(.*?)^```/gms)].map(([, diff = '']) => diff).join('')
