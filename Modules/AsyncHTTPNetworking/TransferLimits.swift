#if AsyncHTTP
internal import CacheCore
internal import NIOCore

/// The time limits of a transfer and the limit of its unread bytes.
struct TransferLimits {
  /// The maximum time that the peer may be silent while the transfer waits for it.
  var idle: TimeAmount
  /// The maximum time for head and body together, measured from the call, or `nil` for no limit.
  var total: TimeAmount?
  /// The number of unread bytes at which the transfer stops requesting more. One more chunk of at most 64 KiB may be in transit.
  var unreadBytes = 256 * 1024

  /// The largest body, in bytes, that the reader gets together with the head, or 0 to wake it at the head.
  var collectUpTo = 0

  /// The maximum number of attempts for a request. Each reused connection to a host may already have been closed by the server.
  var attempts = 1

  /// The error for a silent server.
  func idlePassed(hasHead: Bool) -> CacheError {
    CacheError(.timedOut, reason: "no data arrived for \(Duration(idle).inSeconds)\(hasHead ? " during the body" : "")")
  }

  /// The error for a request that got no connection.
  var queuePassed: CacheError {
    CacheError(.timedOut, reason: "no connection to the host became available for \(Duration(idle).inSeconds)")
  }

  /// The error for a transfer that exceeds its total time.
  func totalPassed(_ total: TimeAmount) -> CacheError {
    CacheError(.timedOut, reason: "the response was not complete after \(Duration(total).inSeconds)")
  }
}
#endif
