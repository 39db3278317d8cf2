import type * as Lookup from '@bytecodealliance/preview2-shim/interfaces/wasi-sockets-ip-name-lookup'
import type * as NetworkTypes from '@bytecodealliance/preview2-shim/interfaces/wasi-sockets-network'
import type * as Tcp from '@bytecodealliance/preview2-shim/interfaces/wasi-sockets-tcp'
import type * as Udp from '@bytecodealliance/preview2-shim/interfaces/wasi-sockets-udp'
import { deniedResource } from './denied-resource.ts'
import { Failure } from './failure.ts'
import { type CurrentInvocation, Resource } from './invocation.ts'

const DENIED = new Failure<NetworkTypes.ErrorCode>('access-denied')

const deny = (): never => {
  throw DENIED
}

/** The one resource of this world that a guest can hold. It gives access to nothing. */
class Network extends Resource implements NetworkTypes.Network {}

const ResolveAddressStream = deniedResource<Lookup.ResolveAddressStream>(deny, {
  resolveNextAddress: true,
  subscribe: true,
})

const TcpSocket = deniedResource<Tcp.TcpSocket>(deny, {
  startBind: true,
  finishBind: true,
  startConnect: true,
  finishConnect: true,
  startListen: true,
  finishListen: true,
  accept: true,
  localAddress: true,
  remoteAddress: true,
  isListening: true,
  addressFamily: true,
  setListenBacklogSize: true,
  keepAliveEnabled: true,
  setKeepAliveEnabled: true,
  keepAliveIdleTime: true,
  setKeepAliveIdleTime: true,
  keepAliveInterval: true,
  setKeepAliveInterval: true,
  keepAliveCount: true,
  setKeepAliveCount: true,
  hopLimit: true,
  setHopLimit: true,
  receiveBufferSize: true,
  setReceiveBufferSize: true,
  sendBufferSize: true,
  setSendBufferSize: true,
  subscribe: true,
  shutdown: true,
})

const UdpSocket = deniedResource<Udp.UdpSocket>(deny, {
  startBind: true,
  finishBind: true,
  stream: true,
  localAddress: true,
  remoteAddress: true,
  addressFamily: true,
  unicastHopLimit: true,
  setUnicastHopLimit: true,
  receiveBufferSize: true,
  setReceiveBufferSize: true,
  sendBufferSize: true,
  setSendBufferSize: true,
  subscribe: true,
})

const IncomingDatagramStream = deniedResource<Udp.IncomingDatagramStream>(deny, { receive: true, subscribe: true })

const OutgoingDatagramStream = deniedResource<Udp.OutgoingDatagramStream>(deny, {
  checkSend: true,
  send: true,
  subscribe: true,
})

/** `wasi:sockets`: linked, because toolchains import it; every way in answers `access-denied` (contract A25). */
export function createSockets(current: CurrentInvocation) {
  const denied = (): never => {
    current.get()
    return deny()
  }
  return {
    network: { Network, networkErrorCode: () => undefined },
    instanceNetwork: { instanceNetwork: () => new Network(current.get()) },
    ipNameLookup: { ResolveAddressStream, resolveAddresses: denied },
    tcp: { TcpSocket },
    tcpCreateSocket: { createTcpSocket: denied },
    udp: { UdpSocket, IncomingDatagramStream, OutgoingDatagramStream },
    udpCreateSocket: { createUdpSocket: denied },
  }
}
