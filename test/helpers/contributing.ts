// Reads the patch that CONTRIBUTING.md shows step by step.

/** The diffs of a document, joined to one patch. */
export const readDiff = (document: string): string =>
  [...document.matchAll(/^```diff\n(.*?)^```/gms)].map(([, diff = '']) => diff).join('')
