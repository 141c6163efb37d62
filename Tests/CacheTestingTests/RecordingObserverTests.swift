import CacheCore
import CacheTesting
import Testing

@Suite("The recording observer", .timeLimit(.minutes(30)))
struct RecordingObserverTests {
  private static func url(_ event: CacheEvent) -> String? {
    if case .joined(let url) = event { return url }
    return nil
  }

  @Test("keeps every event, in order")
  func order() {
    let observer = RecordingObserver()
    for index in 0..<5 { observer.observe(.joined(url: "\(index)")) }
    #expect(observer.events.compactMap(Self.url) == ["0", "1", "2", "3", "4"])
  }

  @Test("finds what has come already, and waits for what has not")
  func waits() async {
    let observer = RecordingObserver()
    observer.observe(.joined(url: "past"))
    #expect(Self.url(await observer.first { Self.url($0) == "past" }) == "past")

    let waiter = Task { await observer.first { Self.url($0)?.hasPrefix("future") == true } }
    observer.observe(.joined(url: "other"))
    observer.observe(.joined(url: "future 1"))
    observer.observe(.joined(url: "future 2"))
    #expect(Self.url(await waiter.value) == "future 1")
  }

  @Test("is like no other")
  func identity() {
    #expect(RecordingObserver().id != RecordingObserver().id)
  }
}
