#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The limit on the body bytes in the socket buffers of the system.
package enum SocketBuffers {
  /// The most bytes that one connection can buffer: a send buffer and a receive buffer, both at the system's limit. The
  /// limit of the receive buffer is 6 MB on most machines and 32 MB on some.
  package static let limit = largest("tcp_rmem", or: 6 << 20) + largest("tcp_wmem", or: 4 << 20)

  /// Returns the last of the three numbers in the given file.
  private static func largest(_ name: String, or fallback: Int) -> Int {
    guard let text = try? String(contentsOfFile: "/proc/sys/net/ipv4/\(name)", encoding: .utf8) else { return fallback }
    return text.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? fallback
  }
}
