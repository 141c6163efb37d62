#if Server
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
  /// Makes the connection end with a reset. If the end of the connection is the end of the body, a normal close would make a
  /// truncated response look complete.
  func resetOnClose() {
    guard let socket = self as? any SocketOptionProvider else { return }
    _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
  }
}
#endif
