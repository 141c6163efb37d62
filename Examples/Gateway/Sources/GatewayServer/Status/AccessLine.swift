import CacheCore
import HTTPServing
import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The format of an access log line: client, time, request, status, body bytes, cache outcome, seconds, completion. Values of
/// parameters that grant access, such as the signature of a presigned URL, are left out.
///
/// ```text
/// 127.0.0.1 2026-11-19T23:05:41.120Z "GET /a.png HTTP/1.1" 200 20480 hit 0.000112 ok
/// ```
enum AccessLine {
  static func text(_ record: TrafficRecord, at now: Timestamp) -> String {
    let peer = record.peer?.ipAddress ?? "-"
    let request = record.request.map {
      "\"\($0.head.method.rawValue) \(escaped($0.loggedTarget)) HTTP/1.\($0.isHTTP10 ? 0 : 1)\""
    }
    return "\(peer) \(time(now)) \(request ?? "-") \(record.status) \(record.bodyBytes) \(record.outcome.rawValue) "
      + "\(seconds(record.duration)) \(record.isComplete ? "ok" : "aborted")\n"
  }

  /// Escapes quotation marks and backslashes. The rest of a target is visible ASCII.
  private static func escaped(_ target: String) -> String {
    guard target.utf8.contains(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else { return target }
    return target.map { $0 == "\"" ? "\\x22" : $0 == "\\" ? "\\x5C" : String($0) }.joined()
  }

  private static func seconds(_ duration: TimeAmount) -> String {
    let micros = max(0, duration.nanoseconds / 1000)
    return "\(micros / 1_000_000).\(String(1_000_000 + micros % 1_000_000).dropFirst())"
  }

  /// Returns the time in ISO 8601, in UTC, with milliseconds.
  private static func time(_ now: Timestamp) -> String {
    Date(timeIntervalSince1970: Double(now.nanoseconds / 1_000_000) / 1000)
      .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }
}
