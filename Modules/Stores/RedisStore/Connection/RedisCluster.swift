#if Redis
internal import CacheCore
internal import NIOSSL

/// A cluster: the nodes and the map from hash slots to them, which follows `MOVED` and `ASK` (Redis cluster specification,
/// "Redirection and resharding").
final class RedisCluster: RedisRouter {
  private struct State {
    var nodes: [RedisEndpoint: RedisNode] = [:]
    var slots: [RedisNode?] = Array(repeating: nil, count: HashSlot.count)
    /// The nodes that the last map did not name. A node that two maps in a row do not name is closed.
    var unused: Set<RedisEndpoint> = []
    var lastLookup: ContinuousClock.Instant?
    var lookup: Task<Result<Void, CacheError>, Never>?
    var redirections = 0
    var isClosed = false
  }

  /// The maximum number of servers, which is that of the cluster specification. Each has connections.
  private static let nodeLimit = 1_000
  /// The number of redirections that are followed at once. While a slot moves, two servers may name each other for a short time.
  private static let immediateRedirections = 2
  /// The first interval before commands are sent again while a slot moves. Each further one is twice as long.
  private static let retryInterval = Duration.milliseconds(5)
  /// The minimum interval between two requests for the map of slots.
  private static let lookupInterval = Duration.milliseconds(100)

  private let seeds: [RedisAddress]
  private let configuration: RedisCache.Configuration
  private let tls: NIOSSLContext?
  private let scripts: ScriptTable
  private let state = Lock(State())

  /// - Parameter seeds: One or more servers of the cluster.
  init(
    _ seeds: [RedisAddress], _ configuration: RedisCache.Configuration, tls: NIOSSLContext?, _ scripts: ScriptTable
  ) {
    (self.seeds, self.configuration, self.tls, self.scripts) = (seeds, configuration, tls, scripts)
  }

  var nodes: [RedisNode] { state.withLock { Array($0.nodes.values) } }

  var redirections: Int { state.withLock { $0.redirections } }

  func close() {
    let nodes = state.withLock { state in
      state.isClosed = true
      return state.nodes.values
    }
    for node in nodes { node.close() }
  }

  // MARK: Sending

  func send(_ commands: [RedisCommand], for tag: HashTag) async throws(CacheError) -> [RESPValue] {
    let slot = HashSlot.of(tag.bytes)
    let deadline = ContinuousClock.now + configuration.timeout
    var target = try await node(of: slot)
    var isAsking = false
    var redirections = 0
    var interval = Self.retryInterval
    while true {
      let replies: [RESPValue]
      do throws(CacheError) {
        replies = try await isAsking ? ask(target, commands) : target.send(commands)
      } catch {
        // The server may have failed, and a replica may have taken over.
        if error.code == .storeUnavailable { startLookup() }
        throw error
      }
      guard let redirection = replies.lazy.compactMap(Redirection.init).first else { return replies }
      state.withLock { $0.redirections += 1 }
      redirections += 1
      if redirection.isTryAgain || redirections > Self.immediateRedirections {
        guard ContinuousClock.now < deadline else {
          throw CacheError(.storeUnavailable, reason: "the Redis cluster is moving the hash slot \(slot)")
        }
        try? await Task.sleep(for: interval)
        if Task.isCancelled { throw .cancelled }
        interval = interval * 2
      }
      switch redirection {
      case .moved(let endpoint):
        target = try node(at: endpoint ?? target.address.endpoint)
        isAsking = false
        state.withLock { $0.slots[slot] = target }
        startLookup(at: target.address.endpoint)
      case .ask(let endpoint):
        target = try node(at: endpoint ?? target.address.endpoint)
        isAsking = true
      case .tryAgain: break
      }
    }
  }

  func send(_ calls: [RoutedCommand]) async throws(CacheError) -> [RESPValue] {
    // The engine sends up to four requests at once.
    let width = max(1, min(64, configuration.pendingCallLimit / 4))
    let results = await withTaskGroup(of: (Int, Result<RESPValue, CacheError>).self) { group in
      var results: [Int: Result<RESPValue, CacheError>] = [:]
      for (index, call) in calls.enumerated() {
        if index >= width, let (index, result) = await group.next() { results[index] = result }
        group.addTask {
          do throws(CacheError) {
            return (index, .success(try await self.send([call.command], for: call.tag)[0]))
          } catch {
            return (index, .failure(error))
          }
        }
      }
      return await group.reduce(into: results) { $0[$1.0] = $1.1 }
    }
    var replies: [RESPValue] = []
    for index in calls.indices { if let reply = try results[index]?.get() { replies.append(reply) } }
    return replies
  }

  /// Sends commands to a node that is importing the slot.
  private func ask(_ node: RedisNode, _ commands: [RedisCommand]) async throws(CacheError) -> [RESPValue] {
    let replies = try await node.send(commands.flatMap { [RedisCommand("ASKING"), $0] })
    return replies.indices.filter { !$0.isMultiple(of: 2) }.map { replies[$0] }
  }

  private enum Redirection {
    case moved(RedisEndpoint?)
    case ask(RedisEndpoint?)
    case tryAgain

    var isTryAgain: Bool { if case .tryAgain = self { true } else { false } }

    init?(_ reply: RESPValue) {
      guard case .error(let message) = reply else { return nil }
      let words = message.split(separator: " ")
      switch words.first {
      case "MOVED" where words.count == 3: self = .moved(Self.endpoint(words[2]))
      case "ASK" where words.count == 3: self = .ask(Self.endpoint(words[2]))
      case "TRYAGAIN": self = .tryAgain
      default: return nil
      }
    }

    /// Returns `nil` for an address without a host, which means the host of the current server.
    private static func endpoint(_ text: Substring) -> RedisEndpoint? {
      guard let colon = text.lastIndex(of: ":"), colon > text.startIndex else { return nil }
      return Int64(digits: text[text.index(after: colon)...]).flatMap {
        RedisEndpoint(String(text[..<colon]), port: Int(clamping: $0))
      }
    }
  }

  // MARK: The map of slots

  func primaries() async throws(CacheError) -> [RedisNode] {
    try await lookUp()
    let nodes = state.withLock { state in
      Dictionary(state.slots.compactMap { $0 }.map { (ObjectIdentifier($0), $0) }, uniquingKeysWith: { first, _ in first })
    }
    return Array(nodes.values)
  }

  private func node(of slot: Int) async throws(CacheError) -> RedisNode {
    if let node = state.withLock({ $0.slots[slot] }) { return node }
    try await lookUp()
    guard let node = state.withLock({ $0.slots[slot] }) else {
      throw CacheError(.storeUnavailable, reason: "no server of the Redis cluster has the hash slot \(slot)")
    }
    return node
  }

  private func node(at endpoint: RedisEndpoint) throws(CacheError) -> RedisNode {
    try state.withLock { state throws(CacheError) in
      if let node = state.nodes[endpoint] { return node }
      guard state.nodes.count < Self.nodeLimit else {
        throw CacheError(.storeUnavailable, reason: "the Redis cluster names more than \(Self.nodeLimit) servers")
      }
      let node = RedisNode(RedisAddress(endpoint, like: seeds[0]), configuration, tls: tls, scripts)
      if state.isClosed { node.close() }
      state.nodes[endpoint] = node
      return node
    }
  }

  /// Starts to read the map of slots, unless it was read a moment ago. `endpoint` is asked first.
  private func startLookup(at endpoint: RedisEndpoint? = nil) {
    let isRecent = state.withLock { $0.lastLookup.map { ContinuousClock.now - $0 < Self.lookupInterval } ?? false }
    if !isRecent { _ = lookup(at: endpoint) }
  }

  /// Returns the running request for the map of slots, or starts one. Concurrent callers share it.
  private func lookup(at endpoint: RedisEndpoint? = nil) -> Task<Result<Void, CacheError>, Never> {
    state.withLock { state in
      if let lookup = state.lookup { return lookup }
      let lookup = Task {
        let result = await self.readSlots(first: endpoint)
        self.state.withLock { state in
          state.lookup = nil
          state.lastLookup = .now
        }
        return result
      }
      state.lookup = lookup
      return lookup
    }
  }

  private func lookUp() async throws(CacheError) { try await lookup().value.get() }

  private func readSlots(first endpoint: RedisEndpoint?) async -> Result<Void, CacheError> {
    var endpoints = endpoint.map { [$0] } ?? []
    for other in state.withLock({ Array($0.nodes.keys) }) + seeds.map(\.endpoint) where !endpoints.contains(other) {
      endpoints.append(other)
    }
    var failure = CacheError(.storeUnavailable, reason: "no server of the Redis cluster is known")
    for endpoint in endpoints {
      do throws(CacheError) {
        let replies = try await self.node(at: endpoint).send([
          RedisCommand("CLUSTER", "SLOTS", replyLimit: RedisCommand.listReply)
        ])
        if case .error(let message) = replies[0] {
          throw CacheError(
            .storeUnavailable, reason: "the Redis server \(endpoint) cannot list the slots of a cluster: \(message)")
        }
        // A server that has left the cluster knows no slots.
        guard let ranges = replies[0].array, !ranges.isEmpty else {
          throw CacheError(.storeUnavailable, reason: "the Redis server \(endpoint) knows no slots of a cluster")
        }
        use(ranges, from: endpoint)
        return .success(())
      } catch {
        failure = error
      }
    }
    return .failure(failure)
  }

  /// Each element of the reply has the first and the last slot, the primary (host, port, identifier) and its replicas.
  private func use(_ ranges: [RESPValue], from endpoint: RedisEndpoint) {
    var slots: [RedisNode?] = Array(repeating: nil, count: HashSlot.count)
    // The ranges of a cluster do not overlap, so they have no more slots together than there are.
    var left = Int64(HashSlot.count)
    for range in ranges {
      guard let range = range.array, range.count >= 3, let first = range[0].integer, let last = range[1].integer,
        let primary = range[2].array, primary.count >= 2, let port = primary[1].integer, first >= 0, first <= last,
        last < HashSlot.count, last - first < left
      else { continue }
      left -= last - first + 1
      var host = primary[0].text
      if host?.isEmpty ?? true, case .host(let current, _) = endpoint { host = current }
      guard let host, let found = RedisEndpoint(host, port: Int(clamping: port)), let node = try? self.node(at: found) else {
        continue
      }
      for slot in Int(first)...Int(last) { slots[slot] = node }
    }
    let retired = state.withLock { state in
      state.slots = slots
      let used = Set(slots.compactMap { $0.map(ObjectIdentifier.init) })
      let seeds = Set(self.seeds.map(\.endpoint))
      let unused = state.nodes.filter { !used.contains(ObjectIdentifier($0.value)) && !seeds.contains($0.key) }
      // A single map can be older than a redirection, or omit a node that is only importing slots.
      let retired = unused.filter { state.unused.contains($0.key) }
      for endpoint in retired.keys { state.nodes[endpoint] = nil }
      state.unused = Set(unused.keys).subtracting(retired.keys)
      return retired
    }
    for (endpoint, node) in retired {
      node.close(CacheError(.storeUnavailable, reason: "\(endpoint) is no longer a server of the Redis cluster"))
    }
  }
}

/// The connections to a single server or to a cluster.
protocol RedisRouter: Sendable {
  /// Sends commands about one hash tag together and returns their replies.
  func send(_ commands: [RedisCommand], for tag: HashTag) async throws(CacheError) -> [RESPValue]

  /// Sends commands, each about its own hash tag, and returns their replies in the same order.
  func send(_ calls: [RoutedCommand]) async throws(CacheError) -> [RESPValue]

  /// The servers that together have all keys.
  func primaries() async throws(CacheError) -> [RedisNode]

  /// The servers that have been used.
  var nodes: [RedisNode] { get }
  var redirections: Int { get }
  func close()
}

/// A command about one hash tag.
struct RoutedCommand: Sendable {
  let command: RedisCommand
  let tag: HashTag
}

/// A single server.
struct SingleServer: RedisRouter {
  let node: RedisNode

  func send(_ commands: [RedisCommand], for tag: HashTag) async throws(CacheError) -> [RESPValue] {
    try await node.send(commands)
  }

  func send(_ calls: [RoutedCommand]) async throws(CacheError) -> [RESPValue] { try await node.send(calls.map(\.command)) }

  func primaries() async throws(CacheError) -> [RedisNode] { [node] }

  var nodes: [RedisNode] { [node] }

  var redirections: Int { 0 }

  func close() { node.close() }
}

/// The hash slot of a key in a cluster: the CRC16 of its hash tag, modulo 16,384 (Redis cluster specification, "Key distribution
/// model").
enum HashSlot {
  static let count = 16_384

  private static let table: [UInt16] = (0..<256).map { byte in
    (0..<8).reduce(UInt16(byte) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
  }

  static func of(_ tag: some Sequence<UInt8>) -> Int {
    Int(tag.reduce(UInt16(0)) { crc, byte in crc << 8 ^ table[Int(crc >> 8 ^ UInt16(byte))] }) % count
  }
}
#endif
