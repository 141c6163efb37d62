import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

/// A downloader whose identity calls a user's code each time that it is read.
private final class IdentifiedDownloader: Downloader {
  let reads = Counter()
  private let base: any Downloader
  private let action = Lock<(@Sendable () -> Void)?>(nil)

  init(_ base: any Downloader) { self.base = base }

  var id: ComponentID {
    reads.increment()
    action.withLock { $0 }?()
    return ComponentID(IdentifiedDownloader.self)
  }

  func onRead(_ action: @escaping @Sendable () -> Void) { self.action.withLock { $0 = action } }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse { try await base.download(request) }
}

@Suite("The identities of components")
struct ComponentIdentityTests {
  @Test("they are read once per load, outside the locks of the manager", .timeLimit(.minutes(30)))
  func joining() async throws {
    let fixture = try ManagerFixture()
    let downloader = IdentifiedDownloader(fixture.network)
    let options = RequestOptions { $0.downloader = .use(downloader) }
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("text", cacheControl: "max-age=60").held(by: gate))
    let manager = fixture.manager
    downloader.onRead {
      // These calls take the locks of the tables in which loads look for each other.
      _ = manager.core.flights.isStoring
      _ = manager.core.responseCoalescer.count
    }

    let loads = (0..<3).map { _ in Task { try await manager.load(fixture.url, options: options).text } }
    await gate.arrived()
    try await Polling.until { fixture.observer.joins == 2 }
    #expect(downloader.reads.value == 3)
    gate.open()
    for load in loads { #expect(try await load.value == "text") }
    #expect(downloader.reads.value == 3)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("requests of HTTP callers join without reading them under a lock", .timeLimit(.minutes(30)))
  func responding() async throws {
    let fixture = try ManagerFixture()
    let downloader = IdentifiedDownloader(fixture.network)
    let options = RequestOptions { $0.downloader = .use(downloader) }
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("text", cacheControl: "max-age=60").held(by: gate))
    let manager = fixture.manager
    downloader.onRead { _ = manager.core.responseCoalescer.count }

    let responses = (0..<3).map { _ in Task { try await fixture.send(options: options).text } }
    await gate.arrived()
    try await Polling.until { fixture.observer.joins == 2 }
    #expect(downloader.reads.value == 3)
    gate.open()
    for response in responses { #expect(try await response.value == "text") }
    #expect(fixture.network.requests.count == 1)
  }
}
