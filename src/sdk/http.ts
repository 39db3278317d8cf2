// The published entry `@aexhq/brain/http`: places for tools of applications that are called over HTTP.
export { application, applicationTool, http, httpTool } from './http/http-places.ts'
export type { ApplicationOptions, HttpOptions } from './http/http-places.ts'
