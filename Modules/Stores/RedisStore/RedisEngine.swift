#if Redis
internal import CacheCore
internal import NIOSSL

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The operations of a cache on its servers.
final class RedisEngine: Sendable {
  /// The time for which the server keeps the chunks of an entry that is being written. Each write restarts it.
  static let writeTimeout = Duration.seconds(120)
  /// The time to live of an entry that never expires. A 304 or a new response restarts it.
  private static let longestLifetime = Duration.seconds(31_536_000)

  let configuration: RedisCache.Configuration
  let names: KeyNames
  let router: any RedisRouter
  let isCluster: Bool
  let scripts = ScriptTable()
  private let counts = Lock(RedisCounters())
  /// The tasks that tell the server about the end of a lease.
  private let leaseEnds = Lock((next: 0, tasks: [Int: Task<Void, Never>]()))
  /// Whether one run of a script may have keys with several hash tags.
  private let joinsCalls: Lock<Bool>

  init(_ addresses: [RedisAddress], isCluster: Bool, _ configuration: RedisCache.Configuration) throws(CacheError) {
    self.configuration = configuration
    self.isCluster = isCluster
    joinsCalls = Lock(!isCluster)
    names = KeyNames(namespace: configuration.namespace)
    let tls = addresses[0].usesTLS ? try configuration.tls.context() : nil
    router =
      isCluster
      ? RedisCluster(addresses, configuration, tls: tls, scripts)
      : SingleServer(node: RedisNode(addresses[0], configuration, tls: tls, scripts))
  }

  var counters: RedisCounters {
    var counters = counts.withLock { $0 }
    counters.lostConnections = router.nodes.reduce(0) { $0 + $1.lostConnections }
    counters.redirections = router.redirections
    return counters
  }

  func count(_ change: (inout RedisCounters) -> Void) { counts.withLock { change(&$0) } }

  var now: Timestamp { configuration.clock.now }

  /// Runs the work that tells the server about the end of a lease.
  func endLease(_ work: @escaping @Sendable () async -> Void) {
    leaseEnds.withLock { state in
      state.next += 1
      state.tasks[state.next] = Task { [number = state.next] in
        await work()
        self.leaseEnds.withLock { $0.tasks[number] = nil }
      }
    }
  }

  /// Waits until the server knows the leases that have ended, or cannot be told.
  func waitForLeaseEnds() async {
    while let task = leaseEnds.withLock({ $0.tasks.values.first }) { await task.value }
  }

  // MARK: Commands

  /// Sends commands about one hash tag and returns their replies.
  ///
  /// - Throws: The error of the connection, or the first error of the server.
  func send(_ commands: [RedisCommand], for tag: HashTag) async throws(CacheError) -> [RESPValue] {
    let replies = try await counted { () throws(CacheError) in try await router.send(commands, for: tag) }
    for case .error(let message) in replies { throw Self.error(message) }
    return replies
  }

  /// Counts a failed call.
  private func counted(
    _ call: () async throws(CacheError) -> [RESPValue]
  ) async throws(CacheError) -> [RESPValue] {
    do throws(CacheError) {
      return try await call()
    } catch {
      if error.code == .storeUnavailable || error.code == .overloaded { count { $0.failedCalls += 1 } }
      throw error
    }
  }

  /// Runs a script and returns its reply. If the server has lost the script, its whole text is sent.
  func run(
    _ script: Script, keys: [[UInt8]], _ arguments: [RedisCommand.Argument], for tag: HashTag
  ) async throws(CacheError) -> RESPValue {
    do throws(CacheError) {
      return try await send([scripts.command(script, keys: keys, arguments)], for: tag)[0]
    } catch {
      guard error.isMissingScript else { throw error }
      return try await send([scripts.command(script, isStored: false, keys: keys, arguments)], for: tag)[0]
    }
  }

  /// The maximum number of calls in one request, before they are joined.
  private static let batch = 128
  /// The maximum number of calls that are joined into one run of a script, which is one atomic step of the server. Starting a
  /// script costs about as much as its work for an entry.
  private static let joinedCalls = 16
  /// The number of requests that are in progress at once, so that the server and this process work at the same time.
  private static let width = 4

  /// Runs ``Script/list`` or ``Script/remove`` for many calls. A single server runs the script once for several of them.
  ///
  /// - Parameter read: Receives the replies to a request, in any order. An error of the server is a reply.
  /// - Throws: The first error, after every request was sent.
  func run<Value: Sendable>(
    _ script: Script, _ calls: [ScriptCall], _ read: @escaping @Sendable ([RESPValue]) throws(CacheError) -> Value
  ) async throws(CacheError) -> [Value] {
    let results = await withTaskGroup(of: Result<Value, CacheError>.self) { group in
      var results: [Result<Value, CacheError>] = []
      for (number, start) in stride(from: 0, to: calls.count, by: Self.batch).enumerated() {
        let width = min(Self.width, configuration.pendingCallLimit)
        if number >= width, let result = await group.next() { results.append(result) }
        group.addTask {
          do throws(CacheError) {
            let part = calls[start..<min(start + Self.batch, calls.count)]
            return .success(try read(try await self.run(script, part)))
          } catch {
            return .failure(error)
          }
        }
      }
      return await group.reduce(into: results) { $0.append($1) }
    }
    var values: [Value] = []
    for result in results { values.append(try result.get()) }
    return values
  }

  private func run(_ script: Script, _ calls: ArraySlice<ScriptCall>) async throws(CacheError) -> [RESPValue] {
    let joins = joinsCalls.withLock { $0 }
    let runs =
      joins
      ? stride(from: calls.startIndex, to: calls.endIndex, by: Self.joinedCalls).map {
        ScriptCall.joining(calls[$0..<min($0 + Self.joinedCalls, calls.endIndex)])
      } : Array(calls)
    func send(isStored: Bool) async throws(CacheError) -> [RESPValue] {
      let commands = runs.map { call in
        RoutedCommand(
          command: scripts.command(script, isStored: isStored, keys: call.keys, call.arguments), tag: call.tag)
      }
      return try await counted { () throws(CacheError) in try await router.send(commands) }
    }
    let replies = try await send(isStored: true)
    func isError(_ isMeant: (String) -> Bool) -> Bool {
      replies.contains { if case .error(let message) = $0 { isMeant(message) } else { false } }
    }
    if joins, isError({ $0.hasPrefix("CROSSSLOT") }) {
      // The server is the only one of a cluster.
      joinsCalls.withLock { $0 = false }
      return try await run(script, calls)
    }
    return isError { Self.error($0).isMissingScript } ? try await send(isStored: false) : replies
  }

  static func error(_ message: String) -> CacheError {
    // Redis 6.2 puts the code of an error in a script behind "ERR Error running script (call to …): …: -".
    let words = message.split(whereSeparator: { $0 == " " || $0 == "-" })
    let isInScript = message.hasPrefix("ERR Error running script")
    let code: CacheError.Code =
      switch isInScript ? words.first(where: { $0 != "ERR" && $0.count > 2 && $0.allSatisfy(\.isUppercase) }) : words.first {
      case "OOM": .diskFull
      case "READONLY", "MISCONF", "NOREPLICAS": .readOnly
      case "WRONGTYPE", "FOREIGN": .unsupported
      default: .storeUnavailable
      }
    return CacheError(code, reason: "the Redis server refused a command: \(message)")
  }

  // MARK: Times

  func isExpired(_ metadata: StoredMetadata, at now: Timestamp) -> Bool { end(of: metadata) <= now }

  /// Returns the time from which an entry is a miss. Until then it is fresh, may be served stale, or can be revalidated.
  ///
  /// The server removes a key at the latest of these times for its entries.
  func end(of metadata: StoredMetadata) -> Timestamp {
    let freshness = metadata.freshness
    var end = max(freshness.freshUntil, metadata.responseTime)
    if let until = freshness.staleWhileRevalidateUntil { end = max(end, until) }
    if let until = freshness.staleIfErrorUntil, until != .distantFuture { end = max(end, until) }
    let expiration = (metadata.expiration ?? configuration.expiration).deadline(from: metadata.responseTime)
    return min(end + configuration.staleRetention, expiration, metadata.responseTime + Self.longestLifetime)
  }
}

extension CacheError {
  /// Whether the server does not have a script, for example because it was restarted.
  fileprivate var isMissingScript: Bool { code == .storeUnavailable && reason.contains("NOSCRIPT") }
}

extension RedisCommand.Argument {
  /// A duration in whole milliseconds, rounded up.
  static func milliseconds(_ duration: Duration) -> Self {
    let (milliseconds, rest) = duration.saturatedNanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return .number(milliseconds + (rest > 0 ? 1 : 0))
  }
}

extension RedisCache.TLS {
  fileprivate func context() throws(CacheError) -> NIOSSLContext {
    do {
      var configuration = TLSConfiguration.makeClientConfiguration()
      configuration.additionalTrustRoots = try additionalRoots.map { .certificates(try NIOSSLCertificate.fromPEMFile($0)) }
      if let certificateChain {
        configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(certificateChain).map { .certificate($0) }
      }
      if let privateKey {
        configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: privateKey, format: .pem))
      }
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw CacheError(
        .invalidConfiguration, reason: "cannot read the certificates for the Redis server: \(error)", underlying: error)
    }
  }
}
#endif
