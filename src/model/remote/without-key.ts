/** Shorter keys are no secrets, and taking them out would leave nothing readable. */
const LEAST = 4

/** Takes a key out of a text in every form in which a provider may have repeated it. */
export function withoutKey(text: string, key: string): string {
  if (key.length < LEAST) return text
  const forms = [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key.toWellFormed())]
  forms.push(Buffer.from(key).toString('base64'))
  return forms.reduce((rest, form) => rest.replaceAll(form, '[api key]'), text)
}
