#if Gateway
import NIOCore
import NIOPosix

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

extension Channel {
  /// Lets the connection end with a reset: where its end is also the body's, a client could take a half answer for a whole one
  /// otherwise.
  func resetOnClose() {
    guard let socket = self as? any SocketOptionProvider else { return }
    _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
  }
}
#endif
