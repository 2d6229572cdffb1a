// Tests which syslog receivers count as having taken the messages, although syslog has no answer. All others are failures.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { findQuietPort } from '../../../test/helpers/ports.ts'
import { OutboundError } from '../../lib/outbound.ts'
import { sendSyslog } from './deliver.ts'

const servers: { close: () => void }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function send(behave: (socket: Socket) => void, text = 'x', timeoutMs = 10_000): Promise<void> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    socket.on('error', () => undefined)
    behave(socket)
  })
  servers.push(server)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  await sendSyslog(`syslog+tcp://127.0.0.1:${(server.address() as AddressInfo).port}`, [text], timeoutMs)
}
const endsAtEnd = (socket: Socket): void => void socket.on('end', () => socket.end())
const LARGE = 'x'.repeat(8 * 1024 * 1024)

describe('a receiver has taken the messages when it closes behind pawl', () => {
  test('at once', () => send((socket) => endsAtEnd(socket.resume())))
  test('after a while', () => send((socket) => socket.resume().on('end', () => setTimeout(() => socket.end(), 300))))
  test('after it has read slowly', () =>
    send((socket) => {
      endsAtEnd(socket)
      setTimeout(() => socket.resume(), 400)
    }, LARGE))
  test('after it has said something', () =>
    send((socket) => {
      socket.write('welcome')
      endsAtEnd(socket.resume())
    }))
})

describe('a receiver has not taken them that', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['ends at once', (socket) => socket.end()],
    ['closes at once', (socket) => socket.destroy()],
    ['resets at once', (socket) => socket.resetAndDestroy()],
    ['ends at once and reads all', (socket) => socket.resume().end()],
    ['closes after it has read what came', (socket) => socket.resume().once('data', () => socket.end())],
    ['closes a moment later', (socket) => socket.resume().once('data', () => setTimeout(() => socket.destroy(), 100))],
    ['closes a moment later unread', (socket) => setTimeout(() => socket.destroy(), 100)],
    ['closes unread when it is told the end', (socket) => setTimeout(() => socket.destroy(), 400)],
    ['resets at the end', (socket) => socket.resume().on('end', () => socket.resetAndDestroy())],
  ])('%s', async (_, behave) => {
    await expect(send(behave)).rejects.toThrow(OutboundError)
  })

  test.each<[string, (socket: Socket) => void]>([
    ['ends after a part', (socket) => socket.once('data', () => socket.pause().end()).resume()],
    ['closes after a part', (socket) => socket.once('data', () => socket.destroy()).resume()],
  ])('%s', async (_, behave) => {
    await expect(send(behave, LARGE, 1_000)).rejects.toThrow(OutboundError)
  })

  test('never closes', async () => {
    await expect(send((socket) => socket.resume(), 'x', 500)).rejects.toThrow('did not answer within 0.5 s')
  })

  test('never reads', async () => {
    await expect(send(() => undefined, LARGE, 500)).rejects.toThrow('did not answer within 0.5 s')
  })

  test('speaks without end', async () => {
    const block = Buffer.alloc(65_536)
    const speak = (socket: Socket): void => {
      socket.resume()
      const go = (): void => {
        while (!socket.destroyed && socket.write(block));
      }
      socket.on('drain', go)
      go()
    }
    await expect(send(speak)).rejects.toThrow('sent more')
  })

  test('is a balancer whose back end is down', async () => {
    const backEnd = await findQuietPort()
    const balance = (socket: Socket): void => {
      const behind = connect(backEnd, '127.0.0.1')
      behind.on('error', () => socket.end())
      socket.pipe(behind)
    }
    await expect(send(balance)).rejects.toThrow('a balancer without a back end does')
  })
})
