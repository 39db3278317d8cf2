/** The part of WebAssembly that the bench uses, of what lib.dom would declare. */
export type CoreModule = { readonly __module?: never }

type Namespace = {
  readonly Module: {
    new (bytes: Uint8Array): CoreModule
    imports(module: CoreModule): readonly { readonly module: string; readonly name: string; readonly kind: string }[]
  }
  readonly Instance: new (module: CoreModule, imports: object) => object
}

export const { WebAssembly: wasm } = globalThis as unknown as { readonly WebAssembly: Namespace }
