#if AsyncHTTP
internal import Synchronization

/// How many connections a client has made.
///
/// async-http-client does not tell which connection a request goes over; but one for which none was made went over one that was
/// there.
final class ConnectionCount: Sendable {
  private let count = Atomic<Int>(0)

  var made: Int { count.load(ordering: .acquiring) }

  func note() { count.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}
#endif
