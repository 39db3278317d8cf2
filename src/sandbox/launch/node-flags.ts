/**
 * How every Node in a box is started: the inner layer of sandbox.md 7.3. No file may be read (`--permission` alone
 * allows none), no worker, child, addon or ffi; code comes from text that was parsed as such, never from `eval`.
 */
export const BOX_NODE_FLAGS: readonly string[] = [
  '--no-warnings',
  // Node exits with 13 where its OpenSSL configuration exists and cannot be read.
  '--openssl-config=/dev/null',
  '--permission',
  '--no-experimental-ffi',
  '--no-addons',
  '--disallow-code-generation-from-strings',
  '--disable-proto=delete',
  '--v8-pool-size=1',
]

/**
 * Reads a script from fd 3 (u32 length, UTF-8) and runs it. A script and not a module: a `data:` import takes three times
 * as long, and an uncaught error in it prints the whole URL.
 */
export const BOOT = `const f=require('node:fs'),r=n=>{const b=Buffer.allocUnsafe(n);for(let o=0;o<n;){const k=f.readSync(3,b,o,n-o);if(!k)process.exit();o+=k}return b};require('node:vm').runInThisContext(r(r(4).readUInt32LE()).toString(),{filename:'brain'})`

/** A script as `BOOT` reads it. */
export function bootMessage(script: Buffer): Buffer {
  const size = Buffer.allocUnsafe(4)
  size.writeUInt32LE(script.length)
  return Buffer.concat([size, script])
}
