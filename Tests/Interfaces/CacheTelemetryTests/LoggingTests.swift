#if Logging
import CacheCore
import CacheManager
import CacheTelemetry
import CacheTesting
import Foundation
import HTTPTypes
import InMemoryLogging
import Logging
import Testing

@Suite("Logging", .timeLimit(.minutes(30)))
struct LoggingTests {
  private let handler = InMemoryLogHandler()

  private func logger(_ level: Logger.Level) -> Logger {
    var logger = Logger(label: "loads") { [handler] _ in handler }
    logger.logLevel = level
    return logger
  }

  private var lines: [String] {
    handler.entries.map { entry in
      let metadata = entry.metadata.filter { $0.key != "load" }.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      return (["\(entry.level): \(entry.message)"] + metadata).joined(separator: " ")
    }
  }

  @Test("a load is one line with its source and durations, without query and password")
  func load() async throws {
    let fixture = try TelemetryFixture({ _ in [.logging(logger(.debug))] })
    try await fixture.loadSlowly()
    await fixture.telemetry.idle()
    _ = try await fixture.manager.load(fixture.url, as: fixture.slow)
    #expect(
      lines == [
        """
        debug: loaded bytes=5 head-ms=2000.0 ms=6000.0 source=network status=200 store-ms=0.0 transfer-ms=3000.0 \
        transform-ms=3000.0 url=https://example.com/image.png
        """
      ])
    #expect(handler.entries.allSatisfy { $0.metadata["load"] != nil })
  }

  @Test("hits are logged at trace, and loads at the configured level")
  func levels() async throws {
    let fixture = try TelemetryFixture({ _ in [.logging(logger(.trace), level: .info)] })
    try await fixture.loadSlowly()
    await fixture.telemetry.idle()
    _ = try await fixture.manager.load(fixture.url, as: fixture.slow)
    #expect(handler.entries.map(\.level) == [.info, .trace])
    #expect(lines.last == "trace: loaded ms=0.0 source=memory url=https://example.com/image.png")
  }

  @Test("an error is logged by its code, without secrets of the URL")
  func failures() async throws {
    let fixture = try TelemetryFixture({ _ in [.logging(logger(.debug))] })
    fixture.network.respond(to: fixture.url, with: .response(.forbidden))
    await #expect(throws: CacheError.self) { try await fixture.manager.load(fixture.url) }
    await fixture.telemetry.idle()
    #expect(lines.first?.hasPrefix("debug: not loaded bytes=0 error=unacceptableStatus") == true)
    #expect(!lines.joined().contains("secret") && !lines.joined().contains("hunter2"))
  }

  @Test(
    "a stale response is logged with its reason, a broken body with its error, and a body that its reader leaves as cancelled")
  func ends() async throws {
    let fixture = try TelemetryFixture({ _ in [.logging(logger(.debug))] })
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60, stale-if-error=600"),
      .response(.serviceUnavailable), .ok("bytes").cut(after: 1), .ok("bytes").chunked(by: 1))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))
    _ = try await fixture.manager.load(fixture.url)
    await fixture.telemetry.idle()
    let request = try HTTPRequest(resource: fixture.url)
    await #expect(throws: CacheError.self) { try await fixture.manager.respond(to: request).body.collect() }
    await fixture.telemetry.idle()
    try await fixture.manager.respond(to: request).body.source.cancel()
    await fixture.telemetry.idle()
    let told = handler.entries.dropFirst().map { entry in
      ["\(entry.message)"]
        + ["source", "fallback-reason", "error", "status", "bytes"].map { entry.metadata[$0].map { "\($0)" } ?? "-" }
    }
    #expect(
      told.map { $0.joined(separator: " ") } == [
        "loaded stale memory unacceptableStatus - 503 0", "not loaded - - truncatedBody 200 1", "cancelled - - cancelled 200 0",
      ])
  }

  @Test("failures of a store and of a background revalidation are warnings")
  func warnings() async throws {
    let fixture = try TelemetryFixture({ _ in [.logging(logger(.warning))] })
    let (load, key) = (LoadID(), CacheKey(resource: fixture.url.absoluteString))
    let error = CacheError(.diskFull, reason: "no space", url: fixture.url.absoluteString, path: "/cache", errno: 28)
    fixture.telemetry.observe(.storeFailed(key: key, error: error), of: load)
    fixture.telemetry.observe(.readFailed(resource: key.resource, error: error), of: load)
    fixture.telemetry.observe(.backgroundFailed(url: LoadURL(fixture.url), error: CacheError(.offline, reason: "x")), of: load)
    #expect(
      lines == [
        "warning: a store could not be written errno=28 error=diskFull path=/cache",
        "warning: a store could not be read errno=28 error=diskFull path=/cache",
        "warning: a background revalidation failed error=offline",
      ])
  }
}
#endif
