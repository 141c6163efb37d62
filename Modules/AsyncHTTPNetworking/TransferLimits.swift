#if AsyncHTTP
internal import CacheCore
internal import NIOCore

/// How long a transfer may take, and how much of it may wait for its reader.
struct TransferLimits {
  /// How long the other end may be silent while something is expected of it.
  var idle: TimeAmount
  /// How long head and body may take together, from the call on.
  var total: TimeAmount?
  /// Bytes that nobody has read yet and from which on nothing more is asked for. One more piece, of 64 KiB at most, may be under
  /// way.
  var unreadBytes = 256 * 1024

  /// How often a request is sent at most, when it meets kept connections that the server has given up: each of a host's may be
  /// such a one.
  var attempts = 1

  /// The error of a server that is silent.
  func idlePassed(hasHead: Bool) -> CacheError {
    CacheError(.timedOut, reason: "nothing came for \(Duration(idle).inSeconds)\(hasHead ? ", in mid-body" : "")")
  }

  /// The error of a turn that does not come.
  var queuePassed: CacheError {
    CacheError(.timedOut, reason: "no connection to the host came free for \(Duration(idle).inSeconds)")
  }

  /// The error of a transfer that takes too long.
  func totalPassed(_ total: TimeAmount) -> CacheError {
    CacheError(.timedOut, reason: "it was not complete after \(Duration(total).inSeconds)")
  }
}
#endif
