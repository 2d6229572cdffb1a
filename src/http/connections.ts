// Which connections of a server are worth waiting for when it stops. Node counts a connection that never sent anything, or
// only half a request, as active; a load balancer or a browser that connects ahead would hold up every stop.
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/** Which event of a server has the socket that its requests will have: with TLS it is there after the handshake. */
const eventOfConnection = (server: Server): 'connection' | 'secureConnection' =>
  'setSecureContext' in server ? 'secureConnection' : 'connection'

/** Follows the connections of `server` from now on. `cutWaiting` ends those on which no completely received request runs. */
export function followConnections(server: Server): { cutWaiting: () => void } {
  const connections = new Map<Socket, IncomingMessage | undefined>()
  server.on(eventOfConnection(server), (socket: Socket) => {
    connections.set(socket, undefined)
    socket.once('close', () => connections.delete(socket))
  })
  server.on('request', (request, response) => {
    connections.set(request.socket, request)
    response.once('close', () => {
      if (connections.has(request.socket)) connections.set(request.socket, undefined)
    })
  })
  return {
    cutWaiting: () => {
      for (const [socket, request] of connections) if (request?.complete !== true) socket.destroy()
    },
  }
}
