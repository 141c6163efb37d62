/// A group of processes that share a durable store and act as one cache.
///
/// Without a fleet, each process sends its own request for a resource that is not cached. With a fleet, the process that holds
/// the lease of the resource sends the request. The other processes wait and then read the response from the shared store. A
/// purge reaches the memory and the disk of every process.
///
/// ```swift
/// let shared = try RedisCache(url: url)
/// configuration.store = try LayeredStore([DiskCache(folder: folder), shared])
/// configuration.fleet = RedisFleet(shared, member: "web-1")
/// ```
public protocol CacheFleet: Sendable {
  /// Requests the lease of a resource. It returns at once, even if another process holds the lease.
  ///
  /// - Parameters:
  ///   - resource: The resource, as in ``CacheKey/resource``.
  ///   - selection: The names and values of the request fields that are known to select a response of the resource. Each
  ///     selection has a lease of its own.
  ///   - known: The position of the last response that the caller has looked for, from ``LeaseReply/stored(position:)``, or
  ///     `nil`.
  /// - Throws: An error if the fleet cannot be reached. The caller then sends its request without a lease.
  func requestLease(of resource: String, selection: String, lookedUpAt known: UInt64?) async throws(CacheError) -> LeaseReply

  /// Joins the fleet until the membership is released or left.
  ///
  /// - Parameters:
  ///   - receive: Handles a message of another member. The messages arrive in order, one at a time. `isLate` tells that the
  ///     member was not current, so the sender has not waited for it. If the call throws, the member is not current, and the
  ///     message is repeated.
  ///   - missed: Called when messages may have been lost, and before the first message if earlier ones are unknown. If it throws,
  ///     the member is not current, and the call is repeated.
  func join(
    receive: @escaping @Sendable (_ message: String, _ isLate: Bool) async throws(CacheError) -> Void,
    missed: @escaping @Sendable () async throws(CacheError) -> Void
  ) -> any FleetMembership
}

/// The membership of one manager in a ``CacheFleet``.
public protocol FleetMembership: AnyObject, Sendable {
  /// Whether this member has handled every message for which ``broadcast(_:)`` has returned.
  ///
  /// It is `false` after a time without contact with the fleet. The manager then revalidates every stored response. It is read
  /// for each load, so it must not wait.
  var isCurrent: Bool { get }
  /// Sends a message to the other members. It returns when every member has handled the message or is no longer current.
  ///
  /// - Throws: An error if the fleet cannot be reached. Members may have received the message.
  func broadcast(_ message: String) async throws(CacheError)
  /// Leaves the fleet. The member is not current any more.
  func leave() async
}

/// The reply to a request for a lease.
public enum LeaseReply: Sendable {
  /// The caller holds the lease and sends the request.
  case granted(any RequestLease)
  /// Another process holds the lease. The caller asks again later.
  case held
  /// Another process has stored a response. The caller looks for it, and asks again with this position if it cannot use it.
  case stored(position: UInt64)
  /// The last response could not be shared. Every process sends its own request.
  case notShared
}

/// The right of one process to send a request for a resource. It expires if the process ends.
///
/// Only the first of the three calls that end it has an effect. None of them waits. Releasing a
/// lease that has not ended has the effect of ``abandon()``.
public protocol RequestLease: AnyObject, Sendable {
  /// The resource of the lease.
  var resource: String { get }
  /// The fields that select the response. See ``CacheFleet``.
  var selection: String { get }
  /// A number that is larger for a later lease of the same name.
  ///
  /// A process that was paused may store its response after its lease has expired and another process has stored a later one. A
  /// shared store compares the tokens and refuses the commit in that case.
  var token: UInt64 { get }
  /// Ends the lease. The response is in the shared store.
  func endAsStored()
  /// Ends the lease. Other processes cannot use the response. For `duration`, they send their own requests without waiting.
  func endAsNotShared(for duration: Duration)
  /// Ends the lease without a response. Another process sends the request instead.
  func abandon()
}
