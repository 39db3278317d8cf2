// Landlock: execute and read a handful of files, nothing else.
import { constants, openSync } from 'node:fs'
import { must, ptr, sys } from '../native.ts'

const O_PATH = 0o10000000
const O_CLOEXEC = 0o2000000
const CREATE_RULESET_VERSION = 1
const RULE_PATH_BENEATH = 1
const EXECUTE = 1n
const READ_FILE = 4n
const NET_BIND_AND_CONNECT_TCP = 3n
const SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3n
/** Every file right that an ABI knows, by ABI; 5 and later know no further one. */
const FILE_RIGHTS = [0n, 0x1fffn, 0x3fffn, 0x7fffn, 0x7fffn, 0xffffn] as const

/** The ABI that the kernel reports; 0 = no landlock. */
export const landlockAbi = (): number => Math.max(0, sys('landlock_create_ruleset', 0, 0, CREATE_RULESET_VERSION))

/** A handle on a file that neither reads nor writes it: taken while we still may, used after the identity changed. */
export const openPath = (path: string): number => openSync(path, O_PATH | O_CLOEXEC | constants.O_NONBLOCK)

/** What a ruleset of this ABI handles, as the kernel of that ABI reads it: it refuses rights that it does not know. */
export function rulesetAttributes(abi: number): Buffer {
  const attributes = Buffer.alloc(abi >= 6 ? 24 : abi >= 4 ? 16 : 8)
  attributes.writeBigUInt64LE(FILE_RIGHTS[Math.min(abi, 5)] ?? 0n, 0)
  if (abi >= 4) attributes.writeBigUInt64LE(NET_BIND_AND_CONNECT_TCP, 8)
  if (abi >= 6) attributes.writeBigUInt64LE(SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS, 16)
  return attributes
}

/** A ruleset in which `executable` files may be run and read, `readable` ones read, and all else is denied. */
export function makeRuleset(abi: number, executable: readonly number[], readable: readonly number[]): number {
  const attributes = rulesetAttributes(abi)
  const ruleset = must('landlock_create_ruleset', ptr(attributes), attributes.length, 0)
  const allow = (fd: number, rights: bigint) => {
    const rule = Buffer.alloc(12)
    rule.writeBigUInt64LE(rights, 0)
    rule.writeInt32LE(fd, 8)
    must('landlock_add_rule', ruleset, RULE_PATH_BENEATH, ptr(rule), 0)
  }
  for (const fd of executable) allow(fd, EXECUTE | READ_FILE)
  for (const fd of readable) allow(fd, READ_FILE)
  return ruleset
}
