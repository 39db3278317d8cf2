import { availableParallelism } from 'node:os'
import type { Limits } from '../../contract/limits.ts'
import { messageOf } from '../../kernel/errors.ts'
import { Alarms } from './alarms.ts'
import type { Box, BoxEvents, BoxState } from './box.ts'
import { BoxesByKey } from './boxes-by-key.ts'
import { type Call, type CallEnd, trapped } from './call.ts'
import { residentBytes } from './process-meter.ts'
import { Unplaced } from './unplaced.ts'

/** Making an instance takes 1 to 150 ms; one that takes this long is killed (design 2). */
const INSTANCE_MS = 5000
const START_MS = 15_000
/** Starting more at once delays the first of them. */
const STARTS_AT_ONCE = 3
/** Loading takes 15 to 150 ms; spare boxes do not wait longer for it. */
const LOAD_MS = 200
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 5000
/**
 * How long a call waits for a busy box of its key before it takes one that has no key yet. Loading a component takes 15 ms
 * of CPU and more, most calls take less than this, and one box with warm caches is quicker than two with cold ones.
 */
const PATIENCE_MS = 10
/**
 * Where more boxes are busy than there are processors another one does not begin sooner, and what it costs is taken from
 * all: even an idle one is left alone then, and the wait is longer in proportion, up to so many times as long.
 */
const MOST_PATIENCE = 5
/** Asked once: for every answer the system reads what the process group may use, which takes 25 us of a call. */
const PROCESSORS = availableParallelism()
/** What an idle box may hold beside the memory of a tool. */
const IDLE_BYTES = 192 * 1024 * 1024
const MEMORY_CHECK_MS = 1000

export type PoolEvents = Pick<BoxEvents, 'onHost' | 'onEnd'> & {
  /** The call was not begun, and will not be. */
  readonly onRefused: (call: Call, end: CallEnd) => void
  /** The call runs from now on. */
  readonly onBegin: (call: Call) => void
}

export type PoolOptions = {
  readonly limits: Limits
  readonly isolation: 'tool' | 'invocation'
  readonly openBox: (events: BoxEvents) => Box
}

/**
 * Boxes by what they are good for. A call gets the idle box of its key, else one that will be idle in a moment, else a
 * warm one that has no key yet. Every step costs a map operation, however many boxes there are.
 */
export class BoxPool {
  readonly #limits: Limits
  readonly #isolation: 'tool' | 'invocation'
  readonly #openBox: PoolOptions['openBox']
  readonly #events: PoolEvents
  readonly #boxes = new Set<Box>()
  readonly #warm = new Set<Box>()
  /** Idle boxes with the instant that they became so, the longest idle first. */
  readonly #idle = new Map<Box, number>()
  readonly #idleByKey = new BoxesByKey()
  /** Boxes that make an instance for nobody yet. */
  readonly #comingByKey = new BoxesByKey()
  /** Busy boxes for which no call waits. */
  readonly #busyByKey = new BoxesByKey()
  readonly #unplaced = new Unplaced()
  readonly #patience = new Alarms<Call>((call) => this.#moveOn(call))
  readonly #slow = new Alarms<Box>((box) => this.#tooSlow(box))
  readonly #idleTimer = new Alarms<BoxPool>(() => this.#killIdle())
  readonly #spareTimer = new Alarms<BoxPool>(() => this.#refill())
  readonly #counts: Record<BoxState, number> = {
    starting: 0,
    warm: 0,
    loading: 0,
    idle: 0,
    busy: 0,
    refreshing: 0,
    dying: 0,
    dead: 0,
  }
  #failedStarts = 0
  #retryAt = 0
  #spareAt = 0

  constructor(options: PoolOptions, events: PoolEvents) {
    this.#limits = options.limits
    this.#isolation = options.isolation
    this.#openBox = options.openBox
    this.#events = events
  }

  get boxes(): ReadonlySet<Box> {
    return this.#boxes
  }

  /** Starts the boxes that are kept warm. */
  open(): void {
    this.#refill()
  }

  /** Finds a box for a call whose artifact is loaded, now or later. */
  place(call: Call): void {
    const crowding = this.#counts.busy / PROCESSORS
    if (crowding < 1 && this.#runIdle(call)) return
    const coming = this.#comingByKey.takeFirst(call.key)
    if (coming !== undefined) {
      claim(coming, call)
      return
    }
    const busy = this.#busyByKey.takeFirst(call.key)
    if (busy === undefined) return this.#placeElsewhere(call)
    claim(busy, call)
    this.#patience.set(call, performance.now() + PATIENCE_MS * Math.min(Math.max(crowding, 1), MOST_PATIENCE))
  }

  /** The box that was used last: its memory is in the caches, and those that are not needed grow old. */
  #runIdle(call: Call): boolean {
    const idle = this.#idleByKey.takeLast(call.key)
    if (idle === undefined) return false
    this.#idle.delete(idle)
    idle.run(call)
    return true
  }

  /** The box that the call waits for is still busy. */
  #moveOn(call: Call): void {
    const { box } = call
    if (box?.claim !== call || box.state !== 'busy') return
    box.claim = undefined
    call.box = undefined
    this.#placeElsewhere(call)
  }

  #placeElsewhere(call: Call): void {
    if (this.#runIdle(call)) return
    const [warm] = this.#warm
    if (warm === undefined) this.#unplaced.add(call)
    else this.#assign(warm, call)
    this.#refill()
  }

  /** Forgets a call that has not begun. */
  withdraw(call: Call): void {
    this.#unplaced.delete(call)
    const { box } = call
    if (box?.claim !== call) return
    call.box = undefined
    box.claim = undefined
    if (box.state === 'loading' || box.state === 'refreshing') this.#offer(box)
    else if (box.state === 'busy') this.#busyByKey.put(box.key ?? '', box)
  }

  /** For Box: every change of state passes here. */
  onState(box: Box, before: BoxState): void {
    const { state } = box
    this.#counts[before]--
    this.#counts[state]++
    switch (state) {
      case 'busy':
        return this.#onBusy(box)
      case 'refreshing':
        return this.#onRefreshing(box)
      case 'idle':
        return this.#onIdle(box)
      case 'loading':
        return this.#onLoading(box)
      case 'warm':
        return this.#onWarm(box)
      case 'dying':
        return this.#leave(box)
      case 'dead':
        return this.#onDead(box, before)
      case 'starting':
        return
      default:
        state satisfies never
    }
  }

  #onLoading(box: Box): void {
    const now = performance.now()
    this.#slow.set(box, now + INSTANCE_MS)
    this.#spareAt = now + LOAD_MS
    this.#spareTimer.set(this, this.#spareAt)
  }

  #onBusy(box: Box): void {
    if (this.#isolation === 'tool') this.#busyByKey.put(box.key ?? '', box)
    if (box.call !== undefined) this.#events.onBegin(box.call)
  }

  #onRefreshing(box: Box): void {
    if (this.#isolation === 'invocation') return box.kill()
    this.#slow.set(box, performance.now() + INSTANCE_MS)
    this.#busyByKey.remove(box.key ?? '', box)
    if (box.claim === undefined) this.#offer(box)
  }

  /** A box that will be idle in a moment serves the first waiting call of its key. */
  #offer(box: Box): void {
    const key = box.key ?? ''
    const call = this.#unplaced.takeOf(key)
    if (call === undefined) this.#comingByKey.put(key, box)
    else claim(box, call)
  }

  #onIdle(box: Box): void {
    this.#slow.clear(box)
    const { claim: claimed } = box
    if (claimed !== undefined) return box.run(claimed)
    const key = box.key ?? ''
    this.#comingByKey.remove(key, box)
    if (this.#isWornOut(box)) return box.kill()
    const next = this.#unplaced.takeOf(key)
    if (next !== undefined) return box.run(next)
    const now = performance.now()
    this.#idle.set(box, now)
    this.#idleByKey.put(key, box)
    if (this.#idleTimer.size === 0 && this.#limits.boxIdleSecs > 0)
      this.#idleTimer.set(this, now + this.#limits.boxIdleSecs * 1000)
    this.#refill()
  }

  /** The kernel's CPU limit of a box counts all its calls, and memory that does not come back is not waited for. */
  #isWornOut(box: Box): boolean {
    const { guestCpuSecs, linearMemoryBytes } = this.#limits
    if (guestCpuSecs > 0 && box.idleCpuMs > guestCpuSecs * 2000) return true
    const now = performance.now()
    if (now < box.memoryCheckedAt + MEMORY_CHECK_MS) return false
    box.memoryCheckedAt = now
    return residentBytes(box.pid) > linearMemoryBytes + IDLE_BYTES
  }

  #onWarm(box: Box): void {
    this.#slow.clear(box)
    this.#failedStarts = 0
    const call = this.#unplaced.take()
    if (call === undefined) this.#warm.add(box)
    else this.#assign(box, call)
  }

  #assign(box: Box, call: Call): void {
    const { artifact } = call
    if (artifact === undefined) throw new Error('a call is placed before its artifact is loaded')
    this.#warm.delete(box)
    claim(box, call)
    box.load(call, artifact)
  }

  /** Takes a box out of every list. */
  #leave(box: Box): void {
    this.#slow.clear(box)
    this.#warm.delete(box)
    this.#idle.delete(box)
    const key = box.key ?? ''
    this.#idleByKey.remove(key, box)
    this.#comingByKey.remove(key, box)
    this.#busyByKey.remove(key, box)
    const { claim: claimed } = box
    box.claim = undefined
    if (claimed === undefined) return
    claimed.box = undefined
    // The instance after another call failed: this one has its own try, in a new box.
    if (box.served) return this.place(claimed)
    const { fault } = box
    if (fault !== undefined && fault.type !== 'lost') return this.#events.onRefused(claimed, fault)
    const message = `Cannot load the ${claimed.role}: its box ended meanwhile`
    this.#events.onRefused(claimed, { type: 'refused', code: 'environment_not_ready', message })
  }

  #onDead(box: Box, before: BoxState): void {
    this.#leave(box)
    this.#boxes.delete(box)
    if (before === 'starting' || box.startFailed)
      this.#onFailedStart(`it ended before it was ready: ${box.lastWords || 'without a word'}`)
    this.#refill()
  }

  /** A box that cannot start costs one waiting call and a pause, so that nothing is tried for ever. */
  #onFailedStart(why: string): void {
    const pause = Math.min(FIRST_RETRY_MS * 2 ** this.#failedStarts++, LAST_RETRY_MS)
    this.#retryAt = performance.now() + pause
    setTimeout(() => this.#refill(), pause + 1)
    const call = this.#unplaced.take()
    if (call === undefined) return
    this.#events.onRefused(call, {
      type: 'refused',
      code: 'environment_not_ready',
      message: `Cannot start a box: ${why}`,
    })
  }

  #tooSlow(box: Box): void {
    if (box.state === 'starting') {
      box.startFailed = true
      return box.kill()
    }
    box.kill(
      trapped(
        'tool_error',
        `Cannot start the ${box.role}: making an instance of it took longer than ${INSTANCE_MS} ms`,
      ),
    )
  }

  #killIdle(): void {
    const now = performance.now()
    const idleMs = this.#limits.boxIdleSecs * 1000
    for (const [box, since] of this.#idle) {
      if (since + idleMs > now) {
        this.#idleTimer.set(this, since + idleMs)
        return
      }
      box.kill()
    }
  }

  #refill(): void {
    const { starting, warm, loading, dying } = this.#counts
    const waiting = this.#unplaced.size
    // Spare boxes compete with the first call of a tool for the processor: they come after it.
    const now = performance.now()
    const wanted = waiting > 0 || (loading > 0 && now < this.#spareAt) ? waiting : this.#limits.warmBoxes
    let missing = Math.min(wanted - starting - warm, STARTS_AT_ONCE - starting)
    if (missing <= 0 || now < this.#retryAt) return
    for (; missing > 0 && this.#boxes.size < this.#limits.boxes; missing--) if (!this.#start()) return
    let killed = dying
    for (const [box] of this.#idle) {
      if (killed++ >= Math.min(missing, waiting)) return
      box.kill()
    }
  }

  /** @returns whether there is a process; without descriptors to spare there is none */
  #start(): boolean {
    try {
      const box = this.#openBox({
        onState: (changed, before) => this.onState(changed, before),
        onHost: this.#events.onHost,
        onEnd: this.#events.onEnd,
      })
      this.#counts.starting++
      this.#boxes.add(box)
      this.#slow.set(box, performance.now() + START_MS)
      return true
    } catch (error) {
      this.#onFailedStart(messageOf(error))
      return false
    }
  }
}

function claim(box: Box, call: Call): void {
  box.claim = call
  call.box = box
}
