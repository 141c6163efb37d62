#if AsyncHTTP
internal import Synchronization

/// The number of connections that a client has created.
///
/// async-http-client does not report the connection of a request. A request for which none was created uses an existing one.
final class ConnectionCount: Sendable {
  private let count = Atomic<Int>(0)

  var made: Int { count.load(ordering: .acquiring) }

  func note() { count.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}
#endif
