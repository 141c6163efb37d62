import CacheCore
import CacheTesting
import Foundation
import Testing

@Suite("Recording observer", .timeLimit(.minutes(30)))
struct RecordingObserverTests {
  private static func url(_ event: CacheEvent) -> String? {
    if case .joined(let url, _) = event { return url.description }
    return nil
  }

  private static func joined(_ text: String, _ load: LoadID) -> CacheEvent {
    .joined(url: LoadURL(URL(string: text) ?? URL(filePath: "/")), to: load)
  }

  private let load = LoadID()

  @Test("every event is recorded in order")
  func order() {
    let observer = RecordingObserver()
    for index in 0..<5 { observer.observe(Self.joined("\(index)", load), of: load) }
    #expect(observer.events.compactMap(Self.url) == ["0", "1", "2", "3", "4"])
  }

  @Test("a recorded event is found, and a future one is awaited")
  func waits() async {
    let observer = RecordingObserver()
    observer.observe(Self.joined("past", load), of: load)
    #expect(Self.url(await observer.first { Self.url($0) == "past" }) == "past")

    let waiter = Task { await observer.first { Self.url($0)?.hasPrefix("future") == true } }
    observer.observe(Self.joined("other", load), of: load)
    observer.observe(Self.joined("future-1", load), of: load)
    observer.observe(Self.joined("future-2", load), of: load)
    #expect(Self.url(await waiter.value) == "future-1")
  }

  @Test("the events of two loads are separate")
  func loads() {
    let observer = RecordingObserver()
    let other = LoadID()
    for (index, load) in [load, other, load].enumerated() { observer.observe(Self.joined("\(index)", other), of: load) }
    #expect(observer.loads == [load, other])
    #expect(observer.events(of: load).compactMap(Self.url) == ["0", "2"])
    #expect(observer.events(of: other).compactMap(Self.url) == ["1"])
  }

  @Test("each observer has a different identity")
  func identity() {
    #expect(RecordingObserver().id != RecordingObserver().id)
  }
}
