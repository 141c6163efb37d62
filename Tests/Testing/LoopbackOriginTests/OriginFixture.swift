#if Origin
import Foundation
import LoopbackOrigin

/// Runs a test with a new origin and stops it, even if the test fails.
func withOrigin(
  link: NetworkLink? = nil, now: @escaping @Sendable () -> Date = { Date() }, requestBodyLimit: Int = 1 << 20,
  logLimit: Int = .max,
  _ body: (OriginServer) async throws -> Void
) async throws {
  let origin = try await OriginServer.start(link: link, now: now, requestBodyLimit: requestBodyLimit, logLimit: logLimit)
  do {
    try await body(origin)
  } catch {
    await origin.stop()
    throw error
  }
  await origin.stop()
}

extension OriginServer {
  func connect() async throws -> RawClient { try await RawClient(port: port) }
}

/// Returns bytes that encode their position, so that a lost or repeated part is detected.
func pattern(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }) }

/// 1994-11-06 08:49:37 UTC, the date in the examples of RFC 9110.
let exampleDate = Date(timeIntervalSince1970: 784_111_777)
#endif
