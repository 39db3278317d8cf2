/** What a provider's rules did to a tool, for the one who wrote it. */
export type SchemaRemark = {
  readonly tool: string
  /** A JSON Pointer into its `input_schema`, such as `#/properties/mail/pattern`; `#` is the whole schema. */
  readonly path: string
  /**
   * `refused`: the provider would answer 400 to the whole request, and nothing here can help. `not_strict`: the tool is sent
   * without `strict`. `looser`: the model is told less than Brain will hold it to. `advice`: some servers refuse it.
   */
  readonly effect: 'refused' | 'not_strict' | 'looser' | 'advice'
  readonly reason: string
  readonly remedy: string
}

/** A remark before it is known which tool it is about. */
export type PathRemark = Omit<SchemaRemark, 'tool'>

/** One line for people. */
export const remarkText = ({ tool, path, reason, remedy }: SchemaRemark): string =>
  `tool "${tool}" at ${path}: ${reason}; ${remedy}`
