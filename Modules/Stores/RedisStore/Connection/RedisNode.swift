#if Redis
internal import CacheCore
internal import NIOCore
internal import NIOSSL

/// The connections to one server, and the circuit breaker around them.
///
/// While the server is unavailable, calls fail at once with the last error. Each attempt to reconnect is the probe that closes
/// the circuit: it authenticates, loads the scripts and waits for the reply to a `PING`.
final class RedisNode: Sendable {
  private struct State {
    var ready: [RedisConnection] = []
    var next = 0
    var tasks: [Task<Void, Never>] = []
    /// The error for calls while no connection is ready. `nil` before the first attempt and after a lost connection.
    var failure: CacheError?
    var nextWaiter = 0
    var waiters: [Int: Resumption<Result<RedisConnection, CacheError>>] = [:]
    /// The error for calls after the node is closed.
    var end: CacheError?
    var lostConnections = 0
    var lastRenewal: ContinuousClock.Instant?
  }

  /// The interval before the second attempt to reconnect.
  private static let firstRetryInterval = Duration.milliseconds(50)
  /// A connection that ends earlier counts as a failed attempt.
  private static let shortLife = Duration.seconds(1)

  let address: RedisAddress
  private let configuration: RedisCache.Configuration
  private let tls: NIOSSLContext?
  private let scripts: ScriptTable
  private let state = Lock(State())

  init(
    _ address: RedisAddress, _ configuration: RedisCache.Configuration, tls: NIOSSLContext?, _ scripts: ScriptTable
  ) {
    (self.address, self.configuration, self.tls, self.scripts) = (address, configuration, tls, scripts)
  }

  var lostConnections: Int { state.withLock { $0.lostConnections } }

  // MARK: Sending

  /// Sends commands together on one connection and returns their replies.
  ///
  /// - Throws: The error of the connection. An error of the server is a reply, unless it concerns the whole server.
  func send(_ commands: [RedisCommand]) async throws(CacheError) -> [RESPValue] {
    let connection: RedisConnection
    if let ready = try readyConnection() { connection = ready } else { connection = try await nextConnection() }
    let replies = try await connection.send(commands)
    for case .error(let message) in replies {
      if Self.concernsServer(message) {
        let error = unavailable(message)
        suspend(error, because: connection)
        throw error
      }
      if message.contains("READONLY") { renew(connection) }
    }
    return replies
  }

  /// Closes a connection to a server that has become a read-only replica, so that the address is resolved again. A permanent
  /// replica still serves reads.
  private func renew(_ connection: RedisConnection) {
    let isDue = state.withLock { state in
      let now = ContinuousClock.now
      if let last = state.lastRenewal, now - last < configuration.readOnlyRetryInterval { return false }
      state.lastRenewal = now
      return true
    }
    if isDue { connection.close(CacheError(.readOnly, reason: "the Redis server \(address.endpoint) is read-only")) }
  }

  /// Whether an error says that the server serves no commands for a while, or that the credentials are no longer valid.
  private static func concernsServer(_ message: String) -> Bool {
    ["LOADING", "MASTERDOWN", "NOAUTH"].contains { message.hasPrefix($0) }
  }

  /// Returns a connection, or `nil` if the caller must wait for one.
  private func readyConnection() throws(CacheError) -> RedisConnection? {
    try state.withLock { state throws(CacheError) in
      if let end = state.end { throw end }
      guard !state.ready.isEmpty else {
        if let failure = state.failure { throw failure }
        return nil
      }
      state.next = (state.next + 1) % state.ready.count
      return state.ready[state.next]
    }
  }

  /// Waits until a connection is ready or an attempt to connect has failed.
  private func nextConnection() async throws(CacheError) -> RedisConnection {
    let id = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    // Two connections share an event loop, which then reads the replies and sends the commands of both each time it wakes up. A
    // loop for each connection costs twice as many wake-ups.
    let loops = (0..<(configuration.connections + 1) / 2).map { _ in configuration.eventLoopGroup.next() }
    let result = await withTaskCancellationHandler {
      await withResumption { continuation in
        let result: Result<RedisConnection, CacheError>? = state.withLock { state in
          if Task.isCancelled { return .failure(.cancelled) }
          if let end = state.end { return .failure(end) }
          if let connection = state.ready.first { return .success(connection) }
          if let failure = state.failure { return .failure(failure) }
          guard state.waiters.count < configuration.pendingCallLimit else {
            return .failure(CacheError(.overloaded, reason: "too many calls wait for a connection to \(address.endpoint)"))
          }
          state.waiters[id] = continuation
          if state.tasks.isEmpty {
            state.tasks = (0..<configuration.connections).map { number in
              Task { await self.keepConnected(on: loops[number / 2]) }
            }
          }
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(returning: .failure(.cancelled))
    }
    return try result.get()
  }

  static let closed = CacheError(.closed, reason: "the store is closed")

  // MARK: Connecting

  private func keepConnected(on loop: any EventLoop) async {
    var interval = Duration.zero
    while !Task.isCancelled {
      do throws(CacheError) {
        let connection = try await connect(on: loop)
        let start = ContinuousClock.now
        let error = await ready(connection)
        // A connection to a read-only server worked.
        guard ContinuousClock.now - start > Self.shortLife || error.code == .readOnly else { throw error }
        interval = .zero
      } catch {
        fail(error)
        interval = min(max(Self.firstRetryInterval, interval * 2), configuration.longestRetryInterval)
        // Many machines must not reconnect at the same moment.
        try? await Task.sleep(for: interval * Double.random(in: 0.5...1))
      }
    }
  }

  private func connect(on loop: any EventLoop) async throws(CacheError) -> RedisConnection {
    let connection = try await RedisConnection.connect(to: address.endpoint, configuration, tls: tls, on: loop)
    do throws(CacheError) {
      let handshake = address.handshake
      let replies = try await connection.send(handshake + Script.allCases.map(\.loading))
      // The reply to AUTH can repeat the password.
      if address.password != nil, case .error(let message) = replies[0] {
        throw unavailable("\(message.prefix { $0 != " " }), the server does not accept the credentials")
      }
      for case .error(let message) in replies { throw unavailable(message) }
      for (script, reply) in zip(Script.allCases, replies.dropFirst(handshake.count)) {
        if let identifier = reply.text { scripts.record(identifier, of: script) }
      }
      return connection
    } catch {
      connection.close(error)
      throw error
    }
  }

  private func unavailable(_ message: String) -> CacheError {
    CacheError(.storeUnavailable, reason: "the Redis server \(address.endpoint) is not available: \(message)")
  }

  /// Uses a connection until it has ended, and returns the reason.
  private func ready(_ connection: RedisConnection) async -> CacheError {
    let waiters = state.withLock { state in
      state.ready.append(connection)
      state.failure = nil
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume(returning: .success(connection)) }
    let error = await withTaskCancellationHandler {
      await withResumption { continuation in
        connection.onClose { [weak self] error in
          // A server that is late on one connection is late on all of them.
          if connection.isOverdue { self?.suspend(error, because: connection) }
          self?.state.withLock { state in
            state.ready.removeAll { $0 === connection }
            if state.end == nil { state.lostConnections += 1 }
          }
          continuation.resume(returning: error)
        }
      }
    } onCancel: {
      connection.close(Self.closed)
    }
    if Task.isCancelled { await connection.waitUntilClosed() }
    return error
  }

  private func fail(_ error: CacheError) {
    let waiters: [Resumption<Result<RedisConnection, CacheError>>] = state.withLock { state in
      guard state.ready.isEmpty, state.end == nil else { return [] }
      state.failure = error
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume(returning: .failure(error)) }
  }

  // MARK: The circuit breaker

  /// Closes the connections because of one of them, unless that one was replaced meanwhile. Calls fail with `error` until a probe
  /// succeeds.
  private func suspend(_ error: CacheError, because connection: RedisConnection) {
    let connections: [RedisConnection] = state.withLock { state in
      guard state.ready.contains(where: { $0 === connection }) else { return [] }
      state.failure = error
      defer { state.ready = [] }
      return state.ready
    }
    for connection in connections { connection.close(error) }
  }

  /// Closes the connections and ends all attempts to connect. Later calls throw `error`.
  func close(_ error: CacheError = closed) {
    let (waiters, tasks) = state.withLock { state in
      state.end = error
      defer { state.waiters = [:] }
      return (Array(state.waiters.values), state.tasks)
    }
    for waiter in waiters { waiter.resume(returning: .failure(error)) }
    for task in tasks { task.cancel() }
  }

  /// Waits until the connections are closed.
  func waitUntilClosed() async {
    for task in state.withLock({ $0.tasks }) { await task.value }
  }
}
#endif
