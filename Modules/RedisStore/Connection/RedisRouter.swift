#if Redis
internal import CacheCore
internal import NIOSSL

/// The connections to a single server or to a cluster.
protocol RedisRouter: Sendable {
  /// Sends commands about one hash tag together and returns their replies.
  func send(_ commands: [RedisCommand], for tag: HashTag) async throws(CacheError) -> [RESPValue]

  /// The servers that together have all keys.
  func primaries() async throws(CacheError) -> [RedisNode]

  /// The servers that have been used.
  var nodes: [RedisNode] { get }
  var redirections: Int { get }
  func close()
}

/// A single server.
struct SingleServer: RedisRouter {
  let node: RedisNode

  func send(_ commands: [RedisCommand], for tag: HashTag) async throws(CacheError) -> [RESPValue] {
    try await node.send(commands)
  }

  func primaries() async throws(CacheError) -> [RedisNode] { [node] }

  var nodes: [RedisNode] { [node] }

  var redirections: Int { 0 }

  func close() { node.close() }
}
#endif
