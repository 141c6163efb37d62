#if Origin
internal import NIOCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A reservation of a port on 127.0.0.1. While this object lives, the system assigns the port to no other socket.
///
/// ```swift
/// let port = try ReservedPort()
/// let url = "http://127.0.0.1:\(port.number)/"  // connections are refused
/// ```
///
/// Its socket is bound but does not listen, so connections to the port are refused. Another socket that sets `SO_REUSEADDR` can
/// listen on the port. After that socket closes, connections are refused again. Without the reservation, the system could then
/// assign the port to another server.
///
/// On Darwin no socket can listen on a port with a bound socket. The port is then free at the time of creation, but not reserved.
public final class ReservedPort: Sendable {
  /// The number of the port.
  public let number: Int
  private let descriptor: Int32

  /// Reserves a port.
  ///
  /// - Parameter number: The port, or 0 for a free one.
  /// - Throws: `IOError` if a socket listens on the port.
  public init(_ number: Int = 0) throws {
    #if canImport(Glibc)
    let kind = Int32(SOCK_STREAM.rawValue)
    #else
    let kind = SOCK_STREAM
    #endif
    let descriptor = socket(AF_INET, kind, 0)
    guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(truncatingIfNeeded: number).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var (length, yes) = (socklen_t(MemoryLayout<sockaddr_in>.size), Int32(1))
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    let isBound = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    guard isBound else {
      let error = IOError(errnoCode: errno, reason: "bind")
      close(descriptor)
      throw error
    }
    self.number = Int(in_port_t(bigEndian: address.sin_port))
    #if canImport(Darwin)
    close(descriptor)
    self.descriptor = -1
    #else
    // A child process that outlives this one must not occupy the port.
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    self.descriptor = descriptor
    #endif
  }

  deinit { if descriptor >= 0 { close(descriptor) } }
}
#endif
