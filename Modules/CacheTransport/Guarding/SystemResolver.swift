public import CacheCore
internal import Dispatch
private import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The system's resolver (`getaddrinfo`), which uses the hosts file, DNS and the other configured sources.
///
/// The call blocks, so it runs on eight separate threads per process. A cancelled caller returns at once. The system call runs to
/// its end and occupies its thread until then.
package struct SystemResolver: HostResolver {
  package var id: ComponentID { ComponentID(Self.self) }

  package init() {}

  package func addresses(of host: String) async throws(CacheError) -> [IPAddress] {
    try await Self.pool.run { Self.lookUp(host) }.get()
  }

  private static let pool = BlockingThreadPool(count: 8, label: "etagere.names")

  private static func lookUp(_ host: String) -> Result<[IPAddress], CacheError> {
    guard !host.utf8.contains(0) else { return .failure(CacheError(.invalidURL, reason: "a host name cannot contain NUL")) }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    // One socket type only: otherwise each address is listed once per type.
    #if canImport(Glibc)
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #else
    hints.ai_socktype = SOCK_STREAM
    #endif
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &found)
    defer { if let found { freeaddrinfo(found) } }
    guard code == 0 else {
      let reason = gai_strerror(code).map { String(cString: $0) } ?? "error \(code)"
      return .failure(CacheError(.hostNotFound, reason: "cannot resolve \(host): \(reason)"))
    }
    var addresses: [IPAddress] = []
    var next = found
    while let entry = next?.pointee {
      if let socket = entry.ai_addr, let address = IPAddress(socketAddress: socket, family: entry.ai_family),
        !addresses.contains(address)
      {
        addresses.append(address)
      }
      next = entry.ai_next
    }
    guard !addresses.isEmpty else { return .failure(CacheError(.hostNotFound, reason: "\(host) has no address")) }
    return .success(addresses)
  }
}

/// A resolver of host names.
public protocol HostResolver: Component {
  /// Returns all addresses of a host. Ends soon after the calling task is cancelled.
  ///
  /// - Parameter host: A name of letters, digits, dots and hyphens, in lower case and without the root dot. It is never an
  ///   address.
  /// - Returns: At least one address.
  /// - Throws: `CacheError.Code.hostNotFound` if the host has no address.
  func addresses(of host: String) async throws(CacheError) -> [IPAddress]
}

/// A small thread pool for calls that block, which must not run on the cooperative pool. A cancelled caller does not wait for its
/// call.
final class BlockingThreadPool: Sendable {
  private struct State {
    var running = 0
    /// The waiting calls, by their numbers in the order of arrival.
    var jobs: [UInt64: @Sendable () -> Void] = [:]
  }

  private let count: Int
  private let queue: DispatchQueue
  private let state = Lock(State())
  private let ids = Atomic<UInt64>(0)

  init(count: Int, label: String) {
    self.count = count
    queue = DispatchQueue(label: label, qos: .utility, attributes: .concurrent)
  }

  /// The number of calls that wait for a thread.
  var waiting: Int { state.withLock { $0.jobs.count } }

  /// Returns the result of `work`.
  ///
  /// - Throws: `CacheError.cancelled` at once after a cancellation. Then `work` is not called, or its result is dropped.
  func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async throws(CacheError) -> Value {
    let id = ids.wrappingAdd(1, ordering: .relaxed).newValue
    let slot = ResultSlot<Value>()
    let value = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        slot.wait(continuation)
        if Task.isCancelled { return slot.arrive(nil) }
        enter(id) { slot.arrive(work()) }
      }
    } onCancel: {
      state.withLock { $0.jobs[id] = nil }
      slot.arrive(nil)
    }
    guard let value else { throw .cancelled }
    return value
  }

  private func enter(_ id: UInt64, _ job: @escaping @Sendable () -> Void) {
    let starts = state.withLock { state in
      state.jobs[id] = job
      guard state.running < count else { return false }
      state.running += 1
      return true
    }
    if starts { queue.async { self.work() } }
  }

  /// The loop of one thread, which runs jobs until there are none.
  private func work() {
    while let job = take() { job() }
  }

  private func take() -> (@Sendable () -> Void)? {
    state.withLock { state in
      if let id = state.jobs.keys.min() { return state.jobs.removeValue(forKey: id) }
      state.running -= 1
      return nil
    }
  }
}

/// A slot for the waiter of one result, which is resumed once. The value is `nil` after a cancellation.
private final class ResultSlot<Value: Sendable>: Sendable {
  private let waiter = Lock<CheckedContinuation<Value?, Never>?>(nil)

  func wait(_ continuation: CheckedContinuation<Value?, Never>) { waiter.withLock { $0 = continuation } }

  func arrive(_ value: Value?) { waiter.withLock { $0.take() }?.resume(returning: value) }
}
