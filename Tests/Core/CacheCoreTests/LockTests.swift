import CacheCore
import Testing

@Suite("The lock")
struct LockTests {
  @Test("the lock admits one thread at a time")
  func excludes() async {
    let lock = SharedCount()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<2_000 { lock.count.withLock { $0 += 1 } } }
      }
    }
    #expect(lock.count.withLock { $0 } == 16_000)
  }

  @Test("the lock is released after an error")
  func throwing() {
    let lock = Lock(1)
    #expect(throws: CacheError.self) { try lock.withLock { _ throws(CacheError) in throw CacheError(.other, reason: "no") } }
    #expect(lock.withLock { $0 } == 1)
  }

  private final class SharedCount: Sendable {
    let count = Lock(0)
  }
}
