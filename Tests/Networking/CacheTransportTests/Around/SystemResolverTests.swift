import CacheCore
import CacheTesting
import Dispatch
import Testing

@testable import CacheTransport

@Suite("The system's resolver")
struct SystemResolverTests {
  @Test("the resolver knows this machine")
  func localhost() async throws {
    let addresses = try await SystemResolver().addresses(of: "localhost")
    #expect(!addresses.isEmpty)
    #expect(addresses.allSatisfy { AddressPolicy.kinds(of: $0).contains(.loopback) })
    #expect(Set(addresses).count == addresses.count)
  }

  // Names that are invalid without a lookup, so that no test uses the network.
  @Test("an unknown name is reported", arguments: ["", " ", "a..b", "localhost\0.com", String(repeating: "a", count: 300)])
  func unknown(_ name: String) async {
    let error = await failure { _ = try await SystemResolver().addresses(of: name) }
    #expect(error?.code == .hostNotFound || error?.code == .invalidURL)
  }

  @Test("the pool blocks a limited number of threads, and a cancelled caller returns at once")
  func lanes() async throws {
    let lanes = BlockingThreadPool(count: 2, label: "test")
    let held = DispatchSemaphore(value: 0)
    let entered = WatchedState(0)
    let blocked = (0..<2).map { number in
      Task {
        try await lanes.run {
          entered.update { $0 += 1 }
          held.wait()
          return number
        }
      }
    }
    await entered.wait { $0 == 2 }

    // Given two callers that wait for a thread
    let leaving = Task { try await lanes.run { entered.update { $0 += 1 } } }
    try await Polling.until { lanes.waiting == 1 }
    let staying = Task { try await lanes.run { "stayed" } }
    try await Polling.until { lanes.waiting == 2 }

    // When one of them and a blocked one are cancelled
    leaving.cancel()
    #expect(await failure { _ = try await leaving.value }?.isCancellation == true)
    #expect(lanes.waiting == 1)
    blocked[0].cancel()
    #expect(await failure { _ = try await blocked[0].value }?.isCancellation == true)

    // Then the others run
    held.signal()
    #expect(try await staying.value == "stayed")
    held.signal()
    #expect(try await blocked[1].value == 1)
    #expect(entered.read { $0 } == 2)
  }
}
