#if Origin
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension OriginServer {
  /// Starts an origin on 127.0.0.1.
  ///
  /// - Parameters:
  ///   - link: The link to the clients, or `nil` for none.
  ///   - port: The port, or 0 for a free one. The port of a stopped origin can be used again, to simulate a restart.
  ///   - now: A closure that returns the time for `Date` fields, for example of a manual clock.
  ///   - requestBodyLimit: The maximum size of a request body in bytes. A larger one gets a 413, and the connection is closed.
  ///   - recordedBodyLimit: The maximum number of bytes recorded of each request body. A longer body is counted, and a digest of
  ///     it is recorded. Use it with a larger `requestBodyLimit` to test large uploads.
  ///   - logLimit: The maximum number of recorded requests. The oldest are removed first. The counters are not affected.
  /// - Throws: `OriginError` if the origin cannot listen on the port.
  public static func start(
    link: NetworkLink? = nil, port: Int = 0, now: @escaping @Sendable () -> Date = { Date() }, requestBodyLimit: Int = 64 << 20,
    recordedBodyLimit: Int = .max, logLimit: Int = .max
  ) async throws(OriginError) -> OriginServer {
    try await OriginServer(
      port: port, link: link, now: now, requestBodyLimit: requestBodyLimit, recordedBodyLimit: recordedBodyLimit,
      logLimit: logLimit)
  }
}
#endif
