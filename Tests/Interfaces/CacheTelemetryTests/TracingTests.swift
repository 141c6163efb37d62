#if Tracing
import CacheCore
import CacheManager
import CacheTelemetry
import CacheTesting
import Foundation
import InMemoryTracing
import Testing
import Tracing

@Suite("Tracing", .timeLimit(.minutes(30)))
struct TracingTests {
  private let tracer = InMemoryTracer()

  private func fixture() throws -> TelemetryFixture { try TelemetryFixture({ [tracer] _ in [.tracing(tracer)] }) }

  /// Returns the spans as text: the name, the name of the parent, and the times from the start of the load in seconds.
  private func told(since start: Timestamp) -> [String] {
    let spans = tracer.finishedSpans
    return spans.map { span in
      func seconds(_ instant: any TracerInstant) -> Double {
        Double(Int64(instant.nanosecondsSinceEpoch) - start.nanoseconds) / 1e9
      }
      let parent = spans.first { $0.spanID == span.parentSpanID }?.operationName ?? "-"
      return "\(span.operationName) in \(parent), \(seconds(span.startInstant)) to \(seconds(span.endInstant))"
    }
  }

  @Test("a load is a child of the caller's span, and its phases are its children")
  func tree() async throws {
    let fixture = try fixture()
    let start = fixture.clock.now
    try await tracer.withSpan("screen", at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: UInt64(start.nanoseconds))) { _ in
      try await fixture.loadSlowly()
      await fixture.telemetry.idle()
    }
    let screen = try #require(tracer.finishedSpans.first { $0.operationName == "screen" })
    let load = try #require(tracer.finishedSpans.first { $0.operationName == "etagere.load" })
    #expect(
      told(since: start).filter { $0.hasPrefix("etagere") } == [
        "etagere.transfer in etagere.load, 0.0 to 3.0", "etagere.store in etagere.load, 3.0 to 3.0",
        "etagere.transform in etagere.load, 3.0 to 6.0", "etagere.load in screen, 0.0 to 6.0",
      ])
    #expect(load.traceID == screen.traceID)
    #expect(load.attributes["url.full"]?.toSpanAttribute() == .string("https://example.com/image.png"))
    #expect(load.attributes["etagere.source"]?.toSpanAttribute() == .string("network"))
    let transfer = try #require(tracer.finishedSpans.first { $0.operationName == "etagere.transfer" })
    #expect(transfer.attributes["http.response.status_code"]?.toSpanAttribute() == .int64(200))
    #expect(transfer.kind == .client)
  }

  @Test("a hit is a child of the caller's span and has no children")
  func hit() async throws {
    let fixture = try fixture()
    try await fixture.loadSlowly()
    await fixture.telemetry.idle()
    tracer.clearFinishedSpans()
    try await tracer.withSpan("screen") { _ in _ = try await fixture.manager.load(fixture.url, as: fixture.slow) }
    #expect(tracer.finishedSpans.map(\.operationName) == ["etagere.load", "screen"])
    #expect(tracer.finishedSpans.first?.parentSpanID == tracer.finishedSpans.last?.spanID)
  }

  @Test("a background revalidation has its own span name and is a child of its load")
  func background() async throws {
    let fixture = try fixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60"), .ok("new").bodyHeld(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    await fixture.telemetry.idle()
    fixture.clock.advance(by: .seconds(61))
    tracer.clearFinishedSpans()
    try await tracer.withSpan("screen") { _ in
      _ = try await fixture.manager.load(fixture.url, options: RequestOptions { $0.policy = .staleWhileRevalidate })
    }
    await gate.arrived()
    gate.open()
    await fixture.telemetry.idle()
    let spans = tracer.finishedSpans
    let load = try #require(spans.first { $0.operationName == "etagere.load" })
    let revalidation = try #require(spans.first { $0.operationName == "etagere.revalidation" })
    #expect(spans.first?.operationName == "screen")
    #expect(load.parentSpanID == spans.first?.spanID && revalidation.parentSpanID == load.spanID)
    #expect(revalidation.attributes["etagere.load"]?.toSpanAttribute() == load.attributes["etagere.load"]?.toSpanAttribute())
  }

  @Test("the span of a load with a stale response has the reason, and is not a failure")
  func stale() async throws {
    let fixture = try fixture()
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\""), .failure(.connectionLost))
    for _ in 1...2 { _ = try await fixture.manager.load(fixture.url) }
    await fixture.telemetry.idle()
    let load = try #require(tracer.finishedSpans.last)
    #expect(load.operationName == "etagere.load" && load.status == nil)
    #expect(load.attributes["etagere.fallback_reason"]?.toSpanAttribute() == .string("connectionLost"))
  }

  @Test("the span of a failed load has the error code, and a cancellation is not a failure")
  func failures() async throws {
    let fixture = try fixture()
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost))
    await #expect(throws: CacheError.self) { try await fixture.manager.load(fixture.url) }
    await fixture.telemetry.idle()
    let load = try #require(tracer.finishedSpans.last)
    #expect(load.attributes["error.type"]?.toSpanAttribute() == .string("connectionLost"))
    #expect(load.status?.code == .error)

    let id = LoadID()
    fixture.telemetry.observe(.started(url: LoadURL(fixture.url)), of: id)
    fixture.telemetry.observe(
      .finished(url: LoadURL(fixture.url), source: nil, fallbackReason: nil, error: .cancelled, duration: .zero), of: id)
    fixture.telemetry.observe(.workEnded, of: id)
    #expect(tracer.finishedSpans.last?.status == nil)
  }

  @Test("telemetry without a tracer is nil")
  func unbootstrapped() { #expect(Telemetry([.tracing()]) == nil) }
}
#endif
