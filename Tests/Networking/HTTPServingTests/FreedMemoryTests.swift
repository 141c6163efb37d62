#if Server
import CacheCore
import NIOCore
import NIOEmbedded
import Testing

@testable import HTTPServing

@Suite("Memory that ended connections have freed")
struct FreedMemoryTests {
  @Test("a burst of ended connections releases memory once, and the next release follows after a pause")
  func bursts() {
    let loop = EmbeddedEventLoop()
    let releases = Lock(0)
    let memory = FreedMemory { releases.withLock { $0 += 1 } }
    func end(_ connections: Int) { for _ in 0..<connections { memory.connectionEnded(on: loop) } }

    end(FreedMemory.connections - 1)
    loop.advanceTime(by: FreedMemory.delay)
    #expect(releases.withLock { $0 } == 0)

    end(200)
    loop.advanceTime(by: FreedMemory.delay)
    #expect(releases.withLock { $0 } == 1)

    end(200)
    loop.advanceTime(by: FreedMemory.delay)
    #expect(releases.withLock { $0 } == 1)
    loop.advanceTime(by: FreedMemory.pause + FreedMemory.delay)
    #expect(releases.withLock { $0 } == 2)

    loop.advanceTime(by: FreedMemory.pause + FreedMemory.delay)
    #expect(releases.withLock { $0 } == 2)
  }
}
#endif
