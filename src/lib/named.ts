// Values of one shape that must not be swapped: keys, above all.

declare const name: unique symbol

/**
 * `T` under a name, in types only. What has no name, such as bytes that were read, may be taken for any; what has one is never taken for
 * another.
 */
export type Named<T, N extends string> = T & { readonly [name]?: N }
