import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@testable import CacheManager

/// A response is stored in steps: its record, the epoch, its bytes. Another change of the resource may come between them.
@Suite("Changes during the storing of a response")
struct ConfirmationRaceTests {
  private let memory = InterruptedMemory()
  private let fixture: ManagerFixture

  init() throws {
    let memory = memory
    fixture = try ManagerFixture { ($0.memory, $0.store) = (memory, nil) }
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "max-age=60"))
  }

  private var resource: String { fixture.url.absoluteString }

  @Test("a response that is removed while it is being stored is no hit")
  func removal() async throws {
    memory.interrupt { [resource] in MemoryTier(store: $0).remove(resource) }
    #expect(try await fixture.manager.load(fixture.url).source == .network)
    #expect(memory.isInterrupted)
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
  }

  @Test("a response that is replaced while it is being stored is no hit")
  func replacement() async throws {
    memory.interrupt { [resource, clock = fixture.clock] store in
      let key = CacheKey(resource: resource)
      let tier = MemoryTier(store: store)
      guard var metadata = tier.index(of: resource)?.metadata(of: "") else { return }
      (metadata.revision, metadata.responseTime) = (.random(), clock.now)
      let record = tier.putRecord(metadata, key, by: nil, clock) { _ in true }
      #expect(record != nil)
    }
    #expect(try await fixture.manager.load(fixture.url).source == .network)
    #expect(memory.isInterrupted)
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
  }
}

/// A memory store that does other work once, after it has changed an entry and before the change returns.
private final class InterruptedMemory: MemoryStoring {
  let id = ComponentID.unique(InterruptedMemory.self)
  private let base = MemoryCache(limits: .init(cost: 10 << 20))
  private let work = Lock<(@Sendable (any MemoryStoring) -> Void)?>(nil)

  /// - Parameter work: The work, which gets a store without an interruption.
  func interrupt(with work: @escaping @Sendable (any MemoryStoring) -> Void) { self.work.withLock { $0 = work } }

  var isInterrupted: Bool { work.withLock { $0 == nil } }

  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool {
    let hasChanged = base.update(key, change)
    let work = work.withLock { work in
      defer { work = nil }
      return work
    }
    work?(base)
    return hasChanged
  }

  func entry(for key: CacheKey) -> MemoryEntry? { base.entry(for: key) }
  @discardableResult
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool { base.insert(entry, for: key) }
  func remove(_ key: CacheKey, ifRevision: Revision?) { base.remove(key, ifRevision: ifRevision) }
  func removeAll() { base.removeAll() }
  func keys() -> [CacheKey] { base.keys() }
}
