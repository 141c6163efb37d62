#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The bytes of a body that the system's sockets hold on their way.
package enum SocketBuffers {
  /// The most bytes that one connection holds: a send buffer and a receive buffer, both grown to the system's limit. The limit of
  /// the receive buffer is 6 MB on most machines and 32 MB on some.
  package static let limit = largest("tcp_rmem", or: 6 << 20) + largest("tcp_wmem", or: 4 << 20)

  /// The last of the three numbers in the file of that name.
  private static func largest(_ name: String, or fallback: Int) -> Int {
    guard let text = try? String(contentsOfFile: "/proc/sys/net/ipv4/\(name)", encoding: .utf8) else { return fallback }
    return text.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? fallback
  }
}
