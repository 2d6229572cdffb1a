// Kinds of rows of the form on the phone and their slots, each of which a template maps to an operation parameter (mobile-token §5).

/** Slots by type of attribute. Without the parameter of a required slot there is no attribute. */
export const ATTRIBUTE_SLOTS: Readonly<
  Record<string, { readonly required: readonly string[]; readonly optional: readonly string[] }>
> = {
  AMOUNT: { required: ['amount', 'currency'], optional: [] },
  AMOUNT_CONVERSION: {
    required: ['dynamic', 'sourceAmount', 'sourceCurrency', 'targetAmount', 'targetCurrency'],
    optional: [],
  },
  KEY_VALUE: { required: ['value'], optional: [] },
  NOTE: { required: ['note'], optional: [] },
  HEADING: { required: [], optional: ['level'] },
  // Published SDKs read a title when there is one, and refuse the attribute without its message.
  ALERT: { required: ['alertType', 'message'], optional: ['title'] },
  IMAGE: { required: ['thumbnailUrl'], optional: ['originalUrl'] },
  PARTY_INFO: { required: ['logoUrl', 'name', 'description'], optional: ['websiteUrl'] },
}
