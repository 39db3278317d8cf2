/** Visible ASCII without blanks: what a header carries as a bearer token, and every server reads as the same text. */
export const BEARER_TOKEN = /^[\x21-\x7e]+$/
