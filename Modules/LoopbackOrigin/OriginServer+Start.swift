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
  ///   - link: The pipe to the clients; nil is bare loopback.
  ///   - port: 0 takes a free one. The port of an origin that was stopped can be taken again: a server that restarts.
  ///   - now: What `Date` fields tell; a manual clock can drive it.
  ///   - requestBodyLimit: Bytes; a request with a larger body is answered 413, and the connection closed.
  ///   - keptBodyLimit: Bytes of each request's body that are remembered. Of a longer one the rest is counted, and a digest made
  ///     of the whole: what a test of large uploads wants, with a larger `requestBodyLimit`.
  ///   - logLimit: How many requests are remembered; the oldest are forgotten first. Counters are not concerned.
  /// - Throws: `OriginError` when the port cannot be had.
  public static func start(
    link: NetworkLink? = nil, port: Int = 0, now: @escaping @Sendable () -> Date = { Date() }, requestBodyLimit: Int = 64 << 20,
    keptBodyLimit: Int = .max, logLimit: Int = .max
  ) async throws(OriginError) -> OriginServer {
    try await OriginServer(
      port: port, link: link, now: now, requestBodyLimit: requestBodyLimit, keptBodyLimit: keptBodyLimit, logLimit: logLimit)
  }
}
#endif
