import CacheCore
import Foundation
import HTTPTypes
import LoopbackOrigin

/// A server on 127.0.0.1 with the images of the list. It counts requests, and changes some of the images on request.
///
/// | request | response |
/// | --- | --- |
/// | `GET` of a row's path | the image, or 304 |
/// | `GET /counts` | ``ServerCounts`` of all images as JSON |
/// | `POST /change` | 204, after some of the images have changed |
final class ImageServer: Sendable {
  /// The link of the measurements: 2 Mbit/s, 5 ms in each direction.
  static let slowLink = NetworkLink(bitsPerSecond: 2_000_000, latency: .milliseconds(5))

  private let origin: OriginServer
  private let lifetime: Duration
  private let state: Locked<ListContent>

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - content: The images.
  ///   - lifetime: The time for which a response is fresh.
  ///   - port: The port, or 0 for a free one.
  ///   - link: The link to the clients, or `nil` for an unlimited one.
  ///   - clock: The clock of the `Date` fields.
  /// - Throws: `OriginError` if the port is in use.
  static func start(
    _ content: ListContent, lifetime: Duration, port: Int = 0, link: NetworkLink?, clock: any CacheClock = SystemClock()
  ) async throws(OriginError) -> ImageServer {
    let origin = try await OriginServer.start(
      link: link, port: port, now: { Date(timeIntervalSince1970: Double(clock.now.nanoseconds) / 1e9) })
    return ImageServer(origin, content, lifetime)
  }

  private init(_ origin: OriginServer, _ content: ListContent, _ lifetime: Duration) {
    self.origin = origin
    self.lifetime = lifetime
    state = Locked(content)
    publish()
    origin.setRoute("/counts", Route { [weak self] _ in self?.countsResponse() ?? OriginResponse(text: "", status: .gone) })
    origin.setRoute(
      "/change", Route { [weak self] request in self?.changeResponse(request) ?? OriginResponse(text: "", status: .gone) })
  }

  /// The address of the server.
  var url: URL { origin.url("/") }

  /// The current images.
  var content: ListContent { state.withLock { $0 } }

  /// The sum of the counts of all images since the start.
  var counts: ServerCounts {
    ListRow.all.reduce(into: ServerCounts()) { sum, row in
      let counters = origin.counters(for: row.path)
      sum.requests += counters.requests
      sum.notModified += counters.notModified
      sum.bodyBytes += counters.bodyBytesSent
    }
  }

  /// Replaces the images of the rows that change.
  func change() {
    state.withLock { $0.change() }
    publish()
  }

  func setLink(_ link: NetworkLink?) async { await origin.setLink(link) }

  func stop() async { await origin.stop() }

  /// Serves until the task is cancelled.
  func run() async throws {
    while true { try await Task.sleep(for: .seconds(86_400)) }
  }

  private func publish() {
    let cacheControl = "max-age=\(Int(lifetime / .seconds(1)))"
    for (row, file) in zip(ListRow.all, content.files) {
      origin.setRoute(
        row.path,
        Route(file.bytes, contentType: file.mediaType, etag: .strong(file.tag), fields: [.cacheControl: cacheControl]))
    }
  }

  private func countsResponse() -> OriginResponse {
    let body = (try? JSONEncoder().encode(counts)) ?? Data()
    return OriginResponse(body, contentType: "application/json", fields: [.cacheControl: "no-store"])
  }

  private func changeResponse(_ request: ReceivedRequest) -> OriginResponse {
    guard request.method == .post else {
      return OriginResponse(text: "use POST\n", status: .methodNotAllowed, fields: [.allow: "POST"])
    }
    change()
    return OriginResponse(Data(), status: .noContent)
  }
}
